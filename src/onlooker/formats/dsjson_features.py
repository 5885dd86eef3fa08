"""Features as Vowpal Wabbit's JSON has them: nested objects are namespaces, and the kind of a value says what it is."""

from __future__ import annotations

from typing import Any

from onlooker.base.errors import InputError
from onlooker.formats.sparse_rows import Columns, SparseRows

_NUMBERS = {int, float}


class ObjectReader:
    """Adds what objects describe to the row in hand.

    Examples
    --------
    >>> rows = SparseRows(Columns())
    >>> reader = ObjectReader(rows)
    >>> reader.add({"ad": {"price": 2, "new": True, "colour": "red", "size": [3, 4]}, "_tag": "ad 7"})
    >>> list(rows.columns), list(rows.values)
    (['ad^price', 'ad^new', ('ad^colour', 'red'), 'ad^size[0]', 'ad^size[1]'], [2.0, 1.0, 1.0, 3.0, 4.0])
    """

    def __init__(self, rows: SparseRows) -> None:
        self._rows = rows
        self._namespaces: dict[str, _Namespace] = {}

    def add(self, node: dict[str, Any], prefix: str = "") -> None:
        """Add an object's features, called `prefix` and their keys."""
        if self._add_numbers(node, prefix):
            return
        for key, value in node.items():
            if key.startswith("_"):
                self._add_special(key, value, prefix)
            elif isinstance(value, dict):
                self.add(value, f"{prefix}{key}^")
            elif isinstance(value, list):
                self._add_list(value, prefix, key)
            else:
                self._add_value(prefix + key, value)

    def _add_numbers(self, node: dict[str, Any], prefix: str) -> bool:
        """Add an object that has nothing but numbers, which is fast; or do nothing and give False."""
        if not _NUMBERS.issuperset(map(type, node.values())):
            return False
        if prefix not in self._namespaces:
            self._namespaces[prefix] = _Namespace(prefix, self._rows.columns)
        try:
            numbers, values = [*map(self._namespaces[prefix].__getitem__, node)], [*map(float, node.values())]
        except (KeyError, OverflowError):
            return False
        self._rows.extend(numbers, values)
        return True

    def _add_list(self, values: list[Any], prefix: str, key: str) -> None:
        for place, value in enumerate(values):
            if isinstance(value, dict):
                self.add(value, f"{prefix}{key}^")
            elif isinstance(value, str | list):
                kind = type(value).__name__
                raise InputError(f"has a {kind} in the list {prefix + key!r}: a list of features has numbers")
            else:
                self._add_value(f"{prefix}{key}[{place}]", value)

    def _add_value(self, name: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, str):
            self._rows.add((name, value), 1.0)
            return
        try:
            self._rows.add(name, float(value))
        except OverflowError as error:
            raise InputError(f"has a number in {name!r} that is too large: keep it below 1e308") from error

    def _add_special(self, key: str, value: Any, prefix: str) -> None:
        """Keys that begin with an underscore are no features, but for a text, of which every word is one."""
        if key == "_text" and isinstance(value, str):
            for word in value.split():
                self._rows.add(prefix + word, 1.0)
        elif key == "__aid":
            raise InputError("refers to an arm that another line describes (__aid): write the log without such ids")


class _Namespace(dict[str, int]):
    """Number of each feature of one namespace by its key; keys that are special are not in it."""

    def __init__(self, prefix: str, columns: Columns) -> None:
        super().__init__()
        self._prefix, self._columns = prefix, columns

    def __missing__(self, key: str) -> int:
        if key.startswith("_"):
            raise KeyError(key)
        number = self[key] = self._columns[self._prefix + key]
        return number
