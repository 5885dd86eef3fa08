"""Features as Vowpal Wabbit's JSON has them: nested objects are namespaces, and the kind of a value says what it is."""

from __future__ import annotations

from typing import Any

from onlooker.errors import InputError
from onlooker.formats.sparse_rows import SparseRows


def add_features(rows: SparseRows, node: dict[str, Any], prefix: str) -> None:
    """Add what an object describes to the row in hand.

    Examples
    --------
    >>> from onlooker.formats.sparse_rows import Columns
    >>> rows = SparseRows(Columns())
    >>> add_features(rows, {"ad": {"price": 2, "new": True, "colour": "red", "size": [3, 4]}, "_tag": "ad 7"}, "")
    >>> list(rows.columns), rows.values
    (['ad^price', 'ad^new', ('ad^colour', 'red'), 'ad^size[0]', 'ad^size[1]'], [2.0, 1.0, 1.0, 3.0, 4.0])
    """
    for key, value in node.items():
        if key.startswith("_"):
            _special(rows, key, value, prefix)
        elif isinstance(value, dict):
            add_features(rows, value, f"{prefix}{key}^")
        elif isinstance(value, list):
            _add_list(rows, value, prefix, key)
        else:
            _add_value(rows, prefix + key, value)


def _add_list(rows: SparseRows, values: list[Any], prefix: str, key: str) -> None:
    for place, value in enumerate(values):
        if isinstance(value, dict):
            add_features(rows, value, f"{prefix}{key}^")
        elif isinstance(value, str | list):
            raise InputError(
                f"has a {type(value).__name__} in the list {prefix + key!r}: a list of features has numbers"
            )
        else:
            _add_value(rows, f"{prefix}{key}[{place}]", value)


def _add_value(rows: SparseRows, name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, str):
        rows.add((name, value), 1.0)
        return
    try:
        rows.add(name, float(value))
    except OverflowError as error:
        raise InputError(f"has a number in {name!r} that is too large: keep it below 1e308") from error


def _special(rows: SparseRows, key: str, value: Any, prefix: str) -> None:
    """Names that begin with an underscore are no features, but for a text, of which every word is one."""
    if key == "_text" and isinstance(value, str):
        for word in value.split():
            rows.add(prefix + word, 1.0)
    elif key == "__aid":
        raise InputError("refers to an arm that another line describes (__aid): write the log without deduplication")
