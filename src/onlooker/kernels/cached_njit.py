"""Compiled loops that are kept on disk: one file per signature, which says itself what it holds.

Numba's own way to keep them is not safe when two processes compile at the same moment: it numbers the signatures of a
function in an index, so two of them can be given the same number, and one is then called with the other's arguments.
It also notices an edit in the caller's module alone, not in the modules of the kernels that this one calls.
"""

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from onlooker.base.errors import InputError
from onlooker.base.files import write_bytes
from onlooker.base.threads import preparation

_DIGEST = hashlib.sha256().digest_size
F = TypeVar("F", bound=Callable[..., Any])


def sources(folder: Path) -> str:
    """A digest of the modules in a folder; empty if there are none."""
    # Names with a point in front are an editor's own.
    found = {path.name: path.read_bytes() for path in sorted(folder.glob("[!.]*.py"))}
    return hashlib.sha256(repr(found).encode()).hexdigest() if found else ""


_FOLDER = Path(__file__).parent
_KERNELS = sources(_FOLDER)
"""Of all kernels, as they are compiled into one another."""


def cached_njit(**options: Any) -> Callable[[F], F]:
    """Have numba compile a function, without the interpreter's lock, and keep the result; `options` are `njit`'s."""

    def compiled(function: F) -> F:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        # Where no folder can be written to, or no source be read, every process compiles for itself.
        with suppress(RuntimeError):
            dispatcher._cache = _Cache(function)  # noqa: SLF001 - numba has no public way to choose the files
        prepare = dispatcher.compile

        def timed(signature: object) -> object:
            with preparation.running():
                return prepare(signature)

        dispatcher.compile = timed
        return dispatcher  # type: ignore[no-any-return]

    return compiled


class KernelFiles:
    """The files of one function.

    Parameters
    ----------
    base : Path
        Their place and how their names begin.
    source : object
        What they depend on beside the key: a file with another is as good as none.
    """

    def __init__(self, base: Path, source: object) -> None:
        self.base = base
        self.source = source

    def save(self, key: object, data: object) -> None:
        """Keep what was compiled for `key`."""
        content = dumps((self.source, key, data))
        write_bytes(self._path(key), hashlib.sha256(content).digest() + content)

    def load(self, key: object) -> object:
        """What was compiled for `key`; None if that has to be done."""
        try:
            file = self._path(key).read_bytes()
        except OSError:
            return None
        digest, content = file[:_DIGEST], file[_DIGEST:]
        # What the disk damaged could be run, and crash.
        if hashlib.sha256(content).digest() != digest:
            return None
        try:
            source, owner, data = pickle.loads(content)
        except Exception:  # noqa: BLE001  of another version of the source: what it names may be gone
            return None
        return data if (source, owner) == (self.source, key) else None

    def flush(self) -> None:
        """Forget all."""
        for path in self.base.parent.glob(f"{self.base.name}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: object) -> Path:
        # Another numba's file might not even load.
        digest = hashlib.sha256(repr((numba.__version__, key)).encode()).hexdigest()[:16]
        return self.base.with_name(f"{self.base.name}.{digest}.nbc")


class _Cache(FunctionCache):  # type: ignore[misc]
    """What numba asks for compiled code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not _KERNELS:
            raise RuntimeError("the kernels' sources are not files")
        super().__init__(function)
        base = Path(self._impl.locator.get_cache_path()) / self._impl.filename_base
        self._cache_file = KernelFiles(base, (self._impl.locator.get_source_stamp(), _KERNELS))

    def save_overload(self, signature: object, compiled: object) -> None:
        """Keep what was compiled, if the disk allows it; if not, it is compiled again the next time."""
        preparation.compiled += 1
        # Edited while this process runs: what was compiled may be of the old source, the new, or both.
        if sources(_FOLDER) != _KERNELS:
            return
        with suppress(OSError, InputError):
            super().save_overload(signature, compiled)
