"""The command, `python -m onlooker` too: it ends in one line from its first moment on, while it is imported.

Only the standard library is used here: nothing else can be loaded where there is hardly any memory.
"""

import os
import signal
import sys

LEAST_STACK = 1 << 20
"""Bytes of stack below which compiled code may overrun it; systems allow eight times that."""


INTERRUPTED = 130
"""Exit code after Ctrl-C."""
_ASKED = (
    {-signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT, -signal.SIGQUIT, -signal.SIGPIPE} if os.name == "posix" else set()
)
"""Ends that somebody asked for."""


def main() -> None:
    """Run the command line; under a limit of the system's in a process of its own, whose sudden end can be reported."""
    _open_streams()
    limit = _system_limit()
    if limit is None:
        _run(None)
        return
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        # Its threads take memory, and where one cannot be started it interrupts the process.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        try:
            _run(limit)
        finally:
            os.write(said, b"1")
        return
    os.close(said)
    sys.exit(_watched(child, heard, limit))


def _run(limit: str | None) -> None:
    try:
        from onlooker.cli import main as run
    except KeyboardInterrupt:
        _end("stopped", INTERRUPTED)
    except (ImportError, OSError, MemoryError):
        # A library that cannot be loaded where memory is limited; otherwise the installation is broken.
        if limit is None:
            raise
        _end(_too_little(limit))
    run()


def _open_streams() -> None:
    """Put nothing in the place of closed streams: a file that is opened would get their number, and what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  for as long as it runs


def _system_limit() -> str | None:
    """What the system limits the process to, in words; None where it leaves room enough."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, getrlimit
    except ImportError:
        return None
    stack = getrlimit(RLIMIT_STACK)[0]
    if stack != RLIM_INFINITY and stack < LEAST_STACK:
        return f"a stack of {stack >> 10:,} kB (ulimit -s)"
    sizes = [(getrlimit(kind)[0], flag) for kind, flag in ((RLIMIT_AS, "-v"), (RLIMIT_DATA, "-d"))]
    finite = [(size, flag) for size, flag in sizes if size != RLIM_INFINITY]
    return None if not finite else f"{min(finite)[0] // 10**6:,} MB of memory (ulimit {min(finite)[1]})"


def _watched(child: int, heard: int, limit: str) -> int:
    """Wait for the process; where it ended without a word, as libraries do that find no memory, say so."""
    interrupts: list[int] = []
    # Ctrl-C reaches both: the child answers it.
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(child, number))
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended in _ASKED:
        signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    os.set_blocking(heard, False)
    try:
        reported = os.read(heard, 1) == b"1"
    except BlockingIOError:
        reported = False
    if not reported or (ended == INTERRUPTED and not interrupts):
        _end(_too_little(limit))
    return ended


def _too_little(limit: str) -> str:
    return f"memory ran out: the system allows {limit}: raise that limit, or use fewer rounds, arms or features"


def _end(said: str, code: int = 2) -> None:
    try:
        sys.stderr.write(f"onlooker: {said}\n")
        sys.stderr.flush()
    finally:
        sys.exit(code)


if __name__ == "__main__":
    main()
