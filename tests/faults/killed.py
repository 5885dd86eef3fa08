"""Kill every writer at every call that touches the disk: `python killed.py FOLDER`.

The folder holds what was there before in `old/WRITER`. Every kill leaves a folder `WRITER/old-NUMBER`, or
`WRITER/nothing-NUMBER` where there was no file before.
"""

import itertools
import os
import sys
from pathlib import Path

from faults.disk import contents, disk, kill, lay
from faults.writers import NEW, WRITERS


def survives(writer: str, folder: Path, number: int) -> bool:
    """Kill a process at call `number` of a writer; True if it was done before that."""
    child = os.fork()
    if not child:
        code = 1
        try:
            with disk(kill, number):
                WRITERS[writer](folder, NEW)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"{writer} failed by itself, see above")
    return os.WIFEXITED(status)


def main() -> None:
    place = Path(sys.argv[1])
    for writer in WRITERS:
        # What is imported or computed once is inherited by those that are killed.
        lay(place / "warm" / writer, {})
        WRITERS[writer](place / "warm" / writer, NEW)
        for before in ("nothing", "old"):
            files = contents(place / "old" / writer) if before == "old" else {}
            for number in itertools.count():
                folder = place / writer / f"{before}-{number}"
                lay(folder, files)
                if survives(writer, folder, number):
                    break


if __name__ == "__main__":
    main()
