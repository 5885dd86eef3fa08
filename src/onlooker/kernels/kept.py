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

from onlooker.errors import InputError
from onlooker.files import write_bytes

F = TypeVar("F", bound=Callable[..., Any])


def sources(folder: Path) -> str:
    """A digest of the modules in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.name} {len(source)} ".encode() + source)
    return digest.hexdigest()


_KERNELS = sources(Path(__file__).parent)
"""Of all kernels, as they are compiled into one another."""


def kept(**options: Any) -> Callable[[F], F]:
    """Have numba compile a function, without the interpreter's lock, and keep the result; `options` are `njit`'s."""

    def compiled(function: F) -> F:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        # Where no folder can be written to, every process compiles for itself.
        with suppress(RuntimeError):
            dispatcher._cache = _Cache(function)  # noqa: SLF001 - numba has no public way to choose the files
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
        write_bytes(self._path(key), dumps((self.source, key, data)))

    def load(self, key: object) -> object:
        """What was compiled for `key`; None if that has to be done."""
        try:
            source, owner, data = pickle.loads(self._path(key).read_bytes())
        except Exception:  # noqa: BLE001 - damaged bytes raise anything
            return None
        return data if (source, owner) == (self.source, key) else None

    def flush(self) -> None:
        """Forget all."""
        for path in self.base.parent.glob(f"{self.base.name}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: object) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self.base.with_name(f"{self.base.name}.{digest}.nbc")


class _Cache(FunctionCache):  # type: ignore[misc]
    """What numba asks for compiled code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        base = Path(self._impl.locator.get_cache_path()) / self._impl.filename_base
        self._cache_file = KernelFiles(base, (numba.__version__, self._impl.locator.get_source_stamp(), _KERNELS))

    def save_overload(self, signature: object, compiled: object) -> None:
        """Keep what was compiled, if the disk allows it; if not, it is compiled again the next time."""
        with suppress(OSError, InputError):
            super().save_overload(signature, compiled)
