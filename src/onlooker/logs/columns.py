"""Columns of a long table: what each means, which are features, and errors where that is not clear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from onlooker.base.checks import check_columns, check_once
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, warn
from onlooker.base.text import some_of
from onlooker.logs.categories import MOST_LEVELS, Encoded, Encoding, level_order, products_of
from onlooker.logs.encoding import is_number, is_text
from onlooker.logs.timestamps import may_be_time

_REWARDS = ("reward", "rewards", "cost", "costs", "click", "clicks", "revenue")
_CHANCES = ("propensity", "propensity_score", "pscore", "prob", "probability", "action_prob", "action_probability")
OUTCOMES = frozenset({*_REWARDS, *_CHANCES})
"""Columns that an observer does not see, in small letters, so they are features only if named."""

ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_\d+__")
"""What pandas calls the row numbers that it saves with a table."""

CONSTANT = "1"
"""Denotes a column of ones among the context columns: its weights are those of each arm in any context."""

PICKS = frozenset(
    {"arm", "action", "chosen", "pick", "picked", "choice", "item", "variant", "decision"}
    | {"arm_id", "action_id", "item_id", "chosen_arm", "picked_arm", "selected", "treatment"}
)
"""What the id of the picked arm may be called in a table of one row per round, in small letters."""

_AMOUNT = re.compile(r"\s*[+-]?(?:[$€£¥]\s*[+-]?[\d.,' ]+|[\d.,' ]+\s*[$€£¥%])\s*")
"""A number with a currency or a per cent sign."""

_GROUPED = re.compile(
    r"\s*[+-]?(?:[1-9]\d{0,2}(?P<mark>[.,'\u2019 \u00a0\u202f])\d{3}(?P<more>(?:(?P=mark)\d{3})*)|\d{1,3})"
    r"(?P<part>[.,]\d+)?\s*"
)
"""A number whose thousands may be apart."""

_FRACTION = re.compile(r"\s*[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?\s*")
"""A number that is not whole; a whole one may be a label."""

CROSS_EXAMPLE = "pass pairs such as ('age', 'price')"
"""How pairs of columns are given."""

POSSIBLE, OFFER_PROBABILITY = "possible", "offer_probability"
LEAVE_OUT = "leave-out"
"""What columns are called that say which arms may be the pick, and with what probability a row was kept."""

MANY = 10_000
"""Levels beyond which they are not counted."""


def is_outcome(name: str) -> bool:
    """Whether a column's name says that it holds rewards or propensities.

    Examples
    --------
    >>> is_outcome("Reward"), is_outcome("price")
    (True, False)
    """
    return name.strip().lower() in OUTCOMES


class ColumnOptions(TypedDict, total=False):
    """The options of `BanditLog.from_frame`, `by` aside; see `Columns`."""

    round: str
    chosen: str
    arm: str | None
    features: Sequence[str] | None
    order_by: str | None
    categories: Sequence[str] | None
    like: Encoded | None
    context: Sequence[str]
    offered: str | None
    items: Any
    users: Any
    user: str | None
    cross: Sequence[tuple[str, str]] | None
    slate: str | None
    wide: str | None
    candidates: str | None
    possible: str | None
    picked_group: str | None
    offer_probability: str | None
    missing: str | None


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The meaning of a table's columns; see `BanditLog.from_frame`."""

    round: str = "round"
    """Id of the round that a row belongs to."""
    chosen: str = "chosen"
    """1 for the arm that was picked."""
    arm: str | None = None
    """Id of the arm."""
    features: Sequence[str] | None = None
    """Columns that describe the arm, or None for all others that can."""
    order_by: str | None = None
    """Time of the round."""
    categories: Sequence[str] | None = None
    """Columns that are categories even if they hold numbers."""
    like: Encoded | None = None
    """Encode as this was."""
    decimal: str | None = None
    """Decimal mark of a table that is text, a point or a comma."""
    by: str | None = None
    """Which of several learners or restarts a round belongs to; each numbers its rounds from the start."""
    cross: Sequence[tuple[str, str]] = ()
    """Pairs of columns whose products are features too; of context columns where a row is a round."""
    slate: str | None = None
    """Position of a pick, where a round has several."""
    possible: str | None = None
    """1 for every arm that may have been the pick, where only a set is known; replaces `chosen`."""
    picked_group: str | None = None
    """Group of an arm, where only the group of the pick is known: `chosen` names it, or is 1 for arms of it."""
    offer_probability: str | None = None
    """With what probability a row is kept in a round that does not pick it, where offers are a sample."""
    missing: str | None = None
    """`"leave-out"` leaves rounds with a missing feature out; None refuses them."""
    wide: str | None = None
    """How columns of one row per round name arms and features, as in `"arm{arm}_{feature}"`."""
    candidates: str | None = None
    """Lists of the offered arms, in a table of one row per round."""
    context: Sequence[str] = ()
    """Columns that describe a round, in a table of one row per round; `"1"` denotes a column of ones."""
    offered: str | None = None
    """Ids of the arms that a round offers, in a table of one row per round; by default every round offers all arms."""
    items: Any = None
    """Table of the arms' features by id, for a table of one row per round."""
    users: Any = None
    """Table of what describes a round's user by id, for a table of one row per round."""
    user: str | None = None
    """Id of a round's user."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cross", as_pairs(self.cross))
        if self.decimal not in {None, ".", ","}:
            raise InputError(f"option 'decimal' is {self.decimal!r}: pass '.' or ','")
        if self.missing not in {None, LEAVE_OUT}:
            raise InputError(f"option 'missing' is {self.missing!r}: pass {LEAVE_OUT!r}")
        for name in ("features", "categories", "context"):
            if isinstance(getattr(self, name), str):
                raise InputError(f"{name} is {getattr(self, name)!r}: pass a list of columns")
        if self.possible is not None:
            if self.picked_group is not None or self.chosen not in {"chosen", self.possible}:
                raise InputError("`possible` says which arms may be the pick: leave `chosen` and `picked_group` out")
            object.__setattr__(self, "chosen", self.possible)
        known = {
            "possible": self.possible,
            "picked_group": self.picked_group,
            "offer_probability": self.offer_probability,
        }
        partial = next((name for name, value in known.items() if value), None)
        if partial is not None and (self.slate or self.wide or self.candidates):
            raise InputError(f"`{partial}` is for long tables with one pick a round: write one row per offered arm")
        arms = {"slate": self.slate, "wide": self.wide, "candidates": self.candidates, **known, "missing": self.missing}
        given = next((name for name, value in arms.items() if value), None)
        if self.per_round and given is not None:
            others = "`context`, `offered`, `items`, `users`"
            raise InputError(f"`{given}` is for tables that describe the arms: leave out {others}")
        if self.wide is not None and self.candidates is not None:
            raise InputError("`wide` and `candidates` are two shapes: name one of them")
        if self.like is not None and (self.features is not None or self.categories):
            raise InputError("`like` says which features there are: leave `features` and `categories` out")

    @property
    def per_round(self) -> bool:
        """Whether a row of the table is a round, not an offered arm."""
        crossed = getattr(self.like, "crossing", None) is not None
        return (
            crossed
            or bool(self.context)
            or any(one is not None for one in (self.offered, self.items, self.users, self.user))
        )

    @property
    def keys(self) -> list[str]:
        """Columns that are not features."""
        every = (
            *(self.round, self.chosen, self.arm, self.offered, self.order_by, self.by, self.slate, self.user),
            *(self.picked_group, self.offer_probability),
        )
        return [name for name in every if name]

    @property
    def crossed(self) -> list[str]:
        """Columns of the products."""
        return list(dict.fromkeys(name for pair in self.cross for name in pair))

    @property
    def named(self) -> list[str] | None:
        """Columns of the features, if the user named them."""
        if self.per_round:
            return list(dict.fromkeys(self.context))
        if self.like is not None:
            return list(Encoding.of(self.like, self.cross).columns)
        if self.features is None:
            return None
        return list(dict.fromkeys([*self.features, *(self.categories or ())]))

    @property
    def needed(self) -> list[str] | None:
        """Columns that are read, if the user named the features."""
        named = self.named
        return None if named is None else list(dict.fromkeys([*self.keys, *named, *self.crossed]))

    def check(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a named column or repeats one, and a column with two meanings."""
        wanted = {"round": self.round, "chosen": self.chosen, "arm": self.arm, "order_by": self.order_by, "by": self.by}
        check_columns(names, {"slate": self.slate})
        check_columns(names, {"picked_group": self.picked_group, "offer_probability": self.offer_probability})
        check_columns(names, wanted, self._otherwise(names))
        meaning = "like" if self.like is not None else "features"
        for name in [*(self.categories or ()), *(self.named or ())]:
            check_columns(names, {"categories" if name in (self.categories or ()) else meaning: name})
            if name in self.keys:
                raise InputError(f"column {name!r} cannot be a feature too: leave it out of the features")
        for name in self.crossed:
            check_columns(names, {"cross": name})
            if name in self.keys:
                raise InputError(f"column {name!r} cannot be multiplied: it is not a feature, leave it out of `cross`")
        check_once(names)
        doubled = [name for name, count in Counter(self.features or ()).items() if count > 1]
        if doubled:
            raise InputError(f"the features have {doubled[0]!r} twice: name it once")

    def _otherwise(self, names: Sequence[str]) -> str:
        """How to read the table if its rows are rounds, where no option says that rows are offered arms."""
        if (self.round, self.chosen) != ("round", "chosen") or {"round", "chosen"} <= {*names}:
            return ""
        pick = next((name for name in (self.arm, *names) if name and name.strip().lower() in PICKS), self.arm)
        skipped = {pick, "round", self.order_by, self.by}
        others = [
            name for name in names if name not in skipped and not is_outcome(name) and not ROW_NUMBER.fullmatch(name)
        ]
        if pick is None or not others:
            return "; if a row is a round, name what describes it as `context` and the picked arm as `arm`"
        shown = ", ".join(map(repr, others[:8])) + (", ..." if len(others) > 8 else "")
        return f"; if a row is a round: read_log(..., context=[{shown}], arm={pick!r})"


def as_pairs(cross: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of columns to multiply, given as such or as text.

    Examples
    --------
    >>> as_pairs([("price", "hours"), "age:price"])
    (('price', 'hours'), ('age', 'price'))
    """
    if cross is None:
        return ()
    wrong = InputError(f"option 'cross' is {str(cross)[:60]}, but a table needs pairs of columns: {CROSS_EXAMPLE}")
    if isinstance(cross, str | bytes) or not isinstance(cross, Sequence):
        raise wrong
    if not all(isinstance(one, str | tuple | list) for one in cross):
        raise wrong
    pairs = [tuple(one.split(":")) if isinstance(one, str) else tuple(one) for one in cross]
    if any(len(pair) != 2 or not all(isinstance(name, str) and name for name in pair) for pair in pairs):
        raise wrong
    return tuple(dict.fromkeys((pair[0], pair[1]) for pair in pairs))


def feature_columns(schema: Any, columns: Columns) -> tuple[list[str], list[str]]:
    """Columns of an Arrow schema that may be features, and those of them that would be categories."""
    chosen = set(columns.categories or ())
    named = columns.named
    if named is not None:
        kinds = {name: schema.field(name).type for name in named}
        return named, _texts(schema, list(dict.fromkeys([*kinds, *columns.crossed])), chosen)
    others = [field for field in schema if field.name in chosen or not _is_skipped(field.name, columns)]
    text = {field.name: field.name in chosen or is_text(field.type) for field in others}
    texts = [name for name, is_category in text.items() if is_category]
    names = [field.name for field in others if text[field.name] or is_number(field.type)]
    odd = [field.name for field in others if not (text[field.name] or is_number(field.type))]
    if not names:
        raise no_features(columns, [*odd, *(name for name in schema.names if is_outcome(name))])
    if odd:
        what_to_do = "turn them into numbers, or sort by a time"
        message = f"neither numbers nor text, so not taken for features: {some_of(odd)}; {what_to_do}"
        warn(message, ColumnsLeftOutWarning)
    return names, list(dict.fromkeys([*texts, *_texts(schema, columns.crossed, chosen)]))


def _texts(schema: Any, names: Sequence[str], chosen: set[str]) -> list[str]:
    """Those of the columns that are categories."""
    return [name for name in names if name in chosen or is_text(schema.field(name).type)]


def understood(names: Sequence[str], columns: Columns) -> Columns:
    """Infer options from a table's column names: where the picks of slates are, and what products `like` has.

    Features of `like` that the table lacks are products of two columns where it has these.

    Examples
    --------
    >>> from onlooker.logs.policy import LinearPolicy
    >>> policy = LinearPolicy([1.0, 2.0], ["price", "age:price"])
    >>> understood(["price", "age"], Columns(like=policy)).cross
    (('age', 'price'),)
    """
    if columns.slate in names and columns.chosen == Columns().chosen and columns.chosen not in names:
        columns = replace(columns, chosen=str(columns.slate))
    if POSSIBLE in names and columns.chosen == Columns().chosen and columns.chosen not in names:
        columns = replace(columns, possible=POSSIBLE)
    if columns.offer_probability is None and OFFER_PROBABILITY in names and not columns.per_round:
        columns = replace(columns, offer_probability=OFFER_PROBABILITY)
    if columns.like is None or columns.cross:
        return columns
    return replace(columns, cross=products_of(columns.like, names))


def time_columns(schema: Any, columns: Columns) -> list[str]:
    """Columns that may hold the rounds' times although no option names them."""
    if columns.order_by is not None or columns.named is not None:
        return []
    chosen = columns.categories or ()
    return [
        field.name
        for field in schema
        if may_be_time(field.name, field.type) and field.name not in chosen and not _is_skipped(field.name, columns)
    ]


def _is_skipped(name: str, columns: Columns) -> bool:
    return name in columns.keys or is_outcome(name) or ROW_NUMBER.fullmatch(name) is not None


def settle(names: Sequence[str], levels: Mapping[str, Mapping[str, int]], columns: Columns) -> Encoding:
    """Decide which of the columns that could be categories are; those that are left out are named in a warning."""
    categories = {*(columns.categories or ())}
    for name, found in levels.items():
        if name not in categories and _are_numbers(found):
            raise InputError(
                f"column {name!r} holds {next(iter(found))[:40]!r} and the like, which is text: "
                "write plain numbers, or name it with `categories`"
            )
    wanted = {*(columns.named or ()), *categories, *columns.crossed}
    many = {name: len(found) for name, found in levels.items() if len(found) > MOST_LEVELS and name not in wanted}
    single = {name: None for name, found in levels.items() if len(found) == 1}
    for left, right in columns.cross:
        alone = next((name for name in (left, right) if name in single), None)
        if alone is not None or (left == right and left in levels):
            what = "is the same in every row" if alone is not None else "is a category, which is its own square"
            raise InputError(f"column {alone or left!r} {what}: leave it out of `cross`")
    kept = [name for name in names if name not in many and name not in single]
    if not kept and not columns.cross:
        raise no_features(columns, [*many, *single])
    reasons = [f"{name!r} (text of {'more than ' * (n > MANY)}{min(n, MANY)} levels)" for name, n in many.items()]
    reasons += [f"{name!r} (the same in every row)" for name in single]
    if reasons:
        shown = ", ".join(reasons[:12]) + (f" and {len(reasons) - 12} more" if len(reasons) > 12 else "")
        message = f"not taken for features: {shown}; name those that matter as categories"
        warn(message, ColumnsLeftOutWarning)
    coded = [name for name in dict.fromkeys([*kept, *columns.crossed]) if name in levels]
    return Encoding.of_columns(kept, {name: level_order(levels[name]) for name in coded}, columns.cross)


def _are_numbers(levels: Mapping[str, int]) -> bool:
    """Whether text is meant as numbers: with thousands apart, or too many levels of amounts or mostly of fractions."""
    if len(levels) <= MOST_LEVELS:
        return _apart(levels)
    fractions = sum(_FRACTION.fullmatch(level) is not None for level in levels)
    return 2 * fractions > len(levels) or all(map(_AMOUNT.fullmatch, levels)) or _apart(levels)


def _apart(levels: Mapping[str, int]) -> bool:
    """Whether text is nothing but numbers, some of which have their thousands apart."""
    if len(levels) < 3:
        return False
    found = [_GROUPED.fullmatch(level) for level in levels]
    # A point or a comma alone may as well be that of a fraction.
    return all(found) and any(
        one is not None and one["mark"] and (one["part"] or one["more"] or one["mark"] not in ".,") for one in found
    )


def no_features(columns: Columns, others: Sequence[str]) -> InputError:
    """The error for a table without a feature."""
    found = f" (left out: {some_of(others)})" if others else ""
    return InputError(f"the table has no feature besides {some_of(columns.keys)}{found}: name the features")
