"""Categories: text columns as one-hot features, each level against the first.

A set of one-hot features that names every level adds up to one in every row, so its weights would not be identifiable.
The first level is the reference: it gets no feature, and the weights of the others say how much better
than it they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onlooker.base.errors import InputError
from onlooker.logs.layouts import columns as columns_of

if TYPE_CHECKING:
    from onlooker.logs.log import BanditLog

Categories = Mapping[str, tuple[str, ...]]
"""All levels of every category by its column, the reference first."""

Source = tuple[str, str | None]
"""A column, and one of its levels or None for its numbers."""

Pairs = tuple[tuple[str, str], ...]
"""Columns to multiply."""

MOST_LEVELS = 32
"""A text column with more levels is not taken for a category unless it is named."""


class ReadOnlyCategories(Mapping[str, tuple[str, ...]]):
    """Categories that cannot be changed but, unlike Python's own read-only mapping, can be pickled and copied.

    Examples
    --------
    >>> import pickle
    >>> categories = ReadOnlyCategories({"colour": ("blue", "red")})
    >>> pickle.loads(pickle.dumps(categories)) == categories == {"colour": ("blue", "red")}
    True
    """

    __slots__ = ("_levels",)

    def __init__(self, levels: Mapping[str, tuple[str, ...]]) -> None:
        self._levels = dict(levels)

    def __getitem__(self, column: str) -> tuple[str, ...]:
        return self._levels[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyCategories, (self._levels,)

    def __repr__(self) -> str:
        return f"ReadOnlyCategories({self._levels})"


class Encoded(Protocol):
    """Anything with encoded features: a log or a policy."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature."""

    @property
    def categories(self) -> Categories | None:
        """Levels of the features that came from text."""


def level_name(column: str, level: str) -> str:
    """What the feature of a level is called.

    Examples
    --------
    >>> level_name("colour", "red")
    'colour=red'
    """
    return f"{column}={level}"


def level_order(levels: Iterable[str]) -> tuple[str, ...]:
    """Levels by their value where all of them are numbers, else as text.

    Examples
    --------
    >>> level_order(["10", "9"]), level_order(["10", "9", "a"])
    (('9', '10'), ('10', '9', 'a'))
    """
    known = sorted(levels)
    try:
        return tuple(sorted(known, key=float))
    except ValueError:
        return tuple(known)


def as_categories(
    categories: Mapping[str, Sequence[str]] | None, feature_names: Sequence[str] | None
) -> Categories | None:
    """Categories as a read-only mapping of tuples, each level but the first a feature; None if there are none.

    Examples
    --------
    >>> as_categories({"colour": ["blue", "red"]}, ["price", "colour=red"])
    ReadOnlyCategories({'colour': ('blue', 'red')})
    """
    if not categories:
        return None
    known = {*(feature_names or ()), *(part for name in feature_names or () for part in _factors(name))}
    checked: dict[str, tuple[str, ...]] = {}
    for column, levels in categories.items():
        if isinstance(levels, str) or not all(isinstance(name, str) for name in (column, *levels)):
            raise InputError("categories must map columns to their levels, all of them text")
        if len(levels) < 2 or len(set(levels)) != len(levels):
            raise InputError(f"category {column!r} has the levels {_some(levels)}: it needs two or more, all different")
        absent = [name for level in levels[1:] if (name := level_name(column, level)) not in known]
        if absent:
            raise InputError(f"category {column!r} has no feature {absent[0]!r}: every level but the first needs one")
        checked[column] = tuple(levels)
    return ReadOnlyCategories(checked)


@dataclass(frozen=True)
class Encoding:
    """How columns become features: numbers as they are, categories one-hot.

    Examples
    --------
    >>> encoding = Encoding(("price", "colour=red"), {"colour": ("blue", "red")})
    >>> encoding.columns
    ('price', 'colour')
    """

    feature_names: tuple[str, ...]
    """One name per feature, in order."""
    categories: Categories
    """Levels of the columns that are categories."""
    cross: Pairs = ()
    """Pairs of columns whose products are features, called `left:right`."""

    @classmethod
    def of(cls, like: Encoded, cross: Pairs | Sequence[tuple[str, str]] = ()) -> Encoding:
        """The encoding that a log or a policy was made with; `cross` are the pairs that it has products of."""
        if like.feature_names is None:
            raise InputError(f"the {type(like).__name__} has no feature names, so nothing can be encoded like it")
        found = cls(like.feature_names, like.categories or {}, tuple(cross))
        for pair in found.cross:
            if not {*_product_names(pair, found.categories)} & {*found.feature_names}:
                raise InputError(f"`like` has no product {':'.join(pair)!r}: leave it out of `cross`")
        return found

    @classmethod
    def of_columns(
        cls, columns: Iterable[str], categories: Categories, cross: Sequence[tuple[str, str]] = ()
    ) -> Encoding:
        """Encode columns in this order, those that are categories one feature a level, then the products of pairs.

        Examples
        --------
        >>> Encoding.of_columns(["price"], {"device": ("pc", "phone")}, [("device", "price")]).feature_names
        ('price', 'device=phone:price')
        """
        names: list[str] = []
        for column in columns:
            levels = categories.get(column)
            names += [column] if levels is None else [level_name(column, level) for level in levels[1:]]
        for pair in cross:
            names += _product_names(pair, categories)
        return cls(tuple(names), categories, tuple(cross))

    def grown(self, levels: Mapping[str, Iterable[str]]) -> Encoding:
        """The same with a feature more, after the others, for each of the `levels` by column that is not known.

        Examples
        --------
        >>> Encoding(("colour=red",), {"colour": ("blue", "red")}).grown({"colour": ["red", "green"]}).feature_names
        ('colour=red', 'colour=green')
        """
        new = {column: level_order({*found} - {*self.categories[column]}) for column, found in levels.items()}
        own = {column for column, level in self.sources if level is not None}
        names = [level_name(column, level) for column, found in new.items() for level in found if column in own]
        categories = {column: (*known, *new.get(column, ())) for column, known in self.categories.items()}
        for pair in self.cross:
            names += [name for name in _product_names(pair, categories) if name not in self.feature_names]
        return Encoding((*self.feature_names, *names), categories, self.cross)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed, each once, in the order of their first feature."""
        products = self.products
        named = zip(self.feature_names, self.sources, strict=True)
        parts = (products.get(name, (source,)) for name, source in named)
        return tuple(dict.fromkeys(column for sources in parts for column, _ in sources))

    @property
    def products(self) -> dict[str, tuple[Source, Source]]:
        """Both sources of every feature that is a product."""
        known = set(self.feature_names)
        return {
            name: sources
            for pair in self.cross
            for name, sources in _product_names(pair, self.categories, every=True).items()
            if name in known
        }

    @property
    def sources(self) -> tuple[Source, ...]:
        """Column of every feature, and the level that it stands for, or None for a number; products stand alone."""
        levels = {
            level_name(column, level): (column, level) for column, all_ in self.categories.items() for level in all_
        }
        return tuple(levels.get(name, (name, None)) for name in self.feature_names)


def _product_names(
    pair: tuple[str, str], categories: Categories, *, every: bool = False
) -> dict[str, tuple[Source, Source]]:
    """Features that are products of two columns, and what they are products of; reference levels have none."""
    left, right = (
        [(column, level) for level in categories[column][0 if every else 1 :]]
        if column in categories
        else [(column, None)]
        for column in pair
    )
    return {f"{_source_name(a)}:{_source_name(b)}": (a, b) for a in left for b in right}


def _source_name(source: Source) -> str:
    column, level = source
    return column if level is None else level_name(column, level)


def _factors(name: str) -> Iterator[str]:
    """What a feature may be a product of, by its name."""
    at = name.find(":")
    while at > 0:
        yield from (name[:at], name[at + 1 :])
        at = name.find(":", at + 1)


def products_of(like: Encoded, columns: Sequence[str]) -> Pairs:
    """Pairs of columns that features are products of by their names, where no column is called like the product.

    Examples
    --------
    >>> like = Encoding(("price", "age:price", "b:c"), {})
    >>> products_of(like, ["price", "age", "b:c"])
    (('age', 'price'),)
    """
    levels = {level_name(column, level): column for column, all_ in (like.categories or {}).items() for level in all_}
    known = {column: column for column in columns} | {
        name: column for name, column in levels.items() if column in columns
    }
    pairs: dict[tuple[str, str], None] = {}
    for name in like.feature_names or ():
        if name in known or name in levels:
            continue
        split = list(_factors(name))
        found = next((pair for pair in zip(split[::2], split[1::2], strict=True) if {*pair} <= {*known}), None)
        if found is not None:
            pairs[known[found[0]], known[found[1]]] = None
    return tuple(pairs)


@dataclass(frozen=True)
class Growing:
    """Encode as before, with one more feature for every unknown level."""

    feature_names: tuple[str, ...] | None
    categories: Categories | None


def _some(levels: Sequence[str]) -> str:
    return ", ".join(map(repr, levels[:5])) or "none"


def aligned(log: BanditLog, like: Encoded) -> BanditLog:
    """The same log with the features that `like` has, in its order; categories are those of `like`.

    Examples
    --------
    >>> from onlooker import BanditLog
    >>> log = BanditLog(np.array([[1.0, 2.0]]), [0, 1], [0], feature_names=["a", "b"])
    >>> aligned(log, BanditLog(np.array([[0.0]]), [0, 1], [0], feature_names=["b"])).features
    array([[2.]])
    """
    wanted = Encoding.of(like).feature_names
    if log.feature_names is None:
        raise InputError("names no features, so they cannot be put in order: leave `like` out")
    absent = [name for name in wanted if name not in log.feature_names]
    if absent:
        raise InputError(f"has no feature {absent[0]!r}, which `like` has: encode it as that was encoded")
    where = {name: j for j, name in enumerate(log.feature_names)}
    features = log.features
    if wanted != log.feature_names:
        features = columns_of(features, np.array([where[name] for name in wanted], dtype=np.int64))
    return log.with_features(features, wanted, like.categories)
