"""Results in notebooks: tables, pictures and HTML of what was found.

Drawing is a matter of the `report` layer above. The package registers it here once (`drawn_by`), so that results can
plot themselves without importing that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class Drawing(Protocol):
    """Draws results."""

    def figure_of(self, result: object) -> Any:
        """A matplotlib figure."""

    def html_of(self, result: object) -> str:
        """A piece of HTML."""


_load: Callable[[], Drawing] | None = None


def drawn_by(load: Callable[[], Drawing]) -> None:
    """Register what draws results; `load` is called for the first drawing."""
    global _load  # noqa: PLW0603  one for the whole package
    _load = load


def _drawing() -> Drawing:
    assert _load is not None, "the package itself names what draws"
    return _load()


class Pictured:
    """A result that has a picture."""

    def plot(self) -> Any:
        """Draw it: a `matplotlib.figure.Figure`, which notebooks show and `savefig` writes."""
        return _drawing().figure_of(self)


class InHtml:
    """A result that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return _drawing().html_of(self)


def as_frame(columns: Mapping[str, Sequence[Any]] | Any) -> Any:
    """A table of these columns, or an Arrow table: of pandas where that is installed, else of pyarrow.

    Examples
    --------
    >>> list(as_frame({"feature": ["price"], "estimate": [1.5]}).columns)
    ['feature', 'estimate']
    """
    import pyarrow as pa

    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        return table
    return table.to_pandas()
