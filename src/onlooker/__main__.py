"""The command, `python -m onlooker` too: Ctrl-C ends it quietly from its first moment on, while it is imported."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from onlooker.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("onlooker: stopped\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
