"""`python -m onlooker` is the same as the command."""

from onlooker.cli import main

if __name__ == "__main__":
    main()
