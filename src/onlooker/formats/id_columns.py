"""Ids that a file holds as text: whole numbers where that loses nothing, else the text itself."""

from __future__ import annotations

from typing import Any

from onlooker.encoding import place
from onlooker.errors import InputError


class IdKind:
    """What a column of ids can be, judged part by part.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kind = IdKind("round")
    >>> kind.see(pa.array(["7", "10"]))
    >>> kind.type
    DataType(int64)
    >>> kind.see(pa.array(["01"]))
    >>> kind.type
    DataType(string)
    """

    def __init__(self, name: str) -> None:
        import pyarrow as pa

        self._name = name
        self._rows = 0
        self._possible = [pa.int64(), pa.uint64()]

    def see(self, column: Any) -> None:
        """Look at the next part of the column."""
        import pyarrow.compute as pc

        blank = pc.index(column, value="").as_py()
        if blank >= 0:
            at = place(self._rows + blank)
            raise InputError(f"column {self._name!r}, {at} is missing: fill it in or leave the round out")
        self._possible = [whole for whole in self._possible if _holds(column, whole)]
        self._rows += len(column)

    @property
    def type(self) -> Any:
        """The Arrow type that keeps every id that was seen."""
        import pyarrow as pa

        return self._possible[0] if self._possible else pa.string()


def as_whole_ids(column: Any, name: str) -> Any:
    """Whole numbers where that loses nothing ("01" stays text), else the text itself."""
    kind = IdKind(name)
    kind.see(column)
    return column.cast(kind.type)


def _holds(column: Any, whole: Any) -> bool:
    import pyarrow as pa

    try:
        return bool(column.cast(whole).cast(column.type).equals(column))
    except pa.ArrowInvalid:
        return False
