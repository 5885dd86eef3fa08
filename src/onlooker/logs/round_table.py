"""From a table of one row per round, with its context and the id of the pick, to a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from onlooker.base.checks import check_columns, check_once, check_plain
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.numerics import arrow_values
from onlooker.base.text import some_of
from onlooker.base.types import Features, Ids, Index
from onlooker.logs.categories import Categories, Encoding, level_name, products_of
from onlooker.logs.columns import CONSTANT, ROW_NUMBER, Columns, feature_columns, settle
from onlooker.logs.encoding import check_complete, check_gaps, feature_rows, is_text, level_counts, place, warn_unseen
from onlooker.logs.factored import FactoredRows
from onlooker.logs.frames import in_arrow, opened
from onlooker.logs.log import BanditLog
from onlooker.logs.offered_ids import Arms, Places, check_unique, distinct, offers_of, places_of, plain_ids
from onlooker.logs.timestamps import Counts, as_times, warn_rounds
from onlooker.logs.users import joined_by

_ID_NAMES = ("id", "item", "item_id", "arm", "arm_id")
"""What the column of ids is called in a table of items that does not call it as the log does."""


def resolved(names: Sequence[str], columns: Columns) -> Columns:
    """The same with the columns that the table has: `round` and `chosen` are empty where there are none.

    Examples
    --------
    >>> found = resolved(["age", "hour", "arm"], Columns(context=["age,hour"]))
    >>> found.context, found.arm, found.round
    (('age', 'hour'), 'arm', '')
    """
    context: list[str] = []
    for name in columns.context:
        parts = [part.strip() for part in name.split(",")]
        context += parts if name not in names and all(part in (*names, CONSTANT) for part in parts) else [name]
    if columns.like is not None:
        columns, context = _like(names, columns, context)
    elif not context and columns.items is None:
        context = [CONSTANT]
    if columns.arm is not None and columns.chosen not in {"", "chosen"}:
        raise InputError("`arm` and `chosen` both name the pick of a round: leave `chosen` out")
    named = columns.arm or (columns.chosen if columns.chosen != "chosen" else None)
    pick = named or next((name for name in ("arm", "chosen") if name in names), None)
    if pick is None:
        raise InputError(f"the table has no column 'arm': it has {some_of(names)}; name the picked arm as `arm`")
    numbered = columns.round if columns.round in names or columns.round != "round" else ""
    found = replace(columns, context=tuple(context), arm=pick, chosen="", round=numbered)
    _check(names, found)
    return found


def _like(names: Sequence[str], columns: Columns, named: Sequence[str]) -> tuple[Columns, list[str]]:
    """The products and the context columns of what a log is to be like; `named` were asked for, if any."""
    crossing = getattr(columns.like, "crossing", None)
    if crossing is None:
        raise InputError("`like` has no context: it is of a table of one row per offered arm, so read such a table")
    if crossing.arms is None and columns.items is None:
        raise InputError("`like` has features of the arms: pass the table of them as `items`")
    if crossing.arms is not None and columns.items is not None:
        raise InputError("`like` has weights for each arm and no features of the arms: leave `items` out")
    plain = Encoding(crossing.context, _known(columns, crossing.context))
    columns = replace(columns, cross=products_of(plain, names))
    known = replace(plain, cross=tuple(columns.cross)).columns
    other = [name for name in named if name not in known]
    if other:
        raise InputError(f"`like` does not have {other[0]!r} in its context: leave `context` out")
    return columns, list(known)


def _known(columns: Columns, features: Sequence[str]) -> Categories:
    """Categories of what a log is to be like that some features come from."""
    every = (columns.like.categories if columns.like is not None else None) or {}
    return {name: levels for name, levels in every.items() if level_name(name, levels[1]) in features}


def _check(names: Sequence[str], columns: Columns) -> None:
    wanted = {
        "round": columns.round or None,
        "arm": columns.arm,
        "offered": columns.offered,
        "order_by": columns.order_by,
        "by": columns.by,
        "user": columns.user,
    }
    check_columns(names, wanted)
    for name in in_table(names, columns).context:
        check_columns(names, {"context": name})
        if name in columns.keys:
            raise InputError(f"column {name!r} cannot be context too: leave it out of the context")
    for name in columns.crossed:
        if name not in columns.context or name == CONSTANT:
            raise InputError(f"`cross` has {name!r}, which is not in the context: name it as `context` too")
    if len(set(columns.context)) < len(columns.context):
        twice = next(name for name in columns.context if columns.context.count(name) > 1)
        raise InputError(f"the context has {twice!r} twice: name it once")
    if columns.features is not None and columns.items is None:
        raise InputError("`features` are of the arms, which a table of one row per round has none of: use `context`")
    check_once(names)


def in_table(names: Sequence[str], columns: Columns) -> Columns:
    """The same without the column of ones, which is not read."""
    kept = [name for name in columns.context if name != CONSTANT or name in names]
    return replace(columns, context=tuple(kept))


def with_ones(table: Any, encoding: Encoding) -> Any:
    """The table with the column of ones, where the encoding has one that the table has not."""
    import pyarrow as pa

    if CONSTANT not in encoding.feature_names or CONSTANT in table.column_names:
        return table
    return table.append_column(CONSTANT, pa.array(np.ones(len(table))))


def category_columns(schema: Any, columns: Columns) -> list[str]:
    """Context columns that are categories: text, and what was named as such."""
    names = [name for name in columns.context if name != CONSTANT or name in schema.names]
    chosen = (columns.categories or ()) if columns.like is None else (columns.like.categories or {})
    for name in names:
        check_plain(schema.field(name), name)
    return [name for name in names if name in chosen or is_text(schema.field(name).type)]


def context_encoding(levels: Mapping[str, Mapping[str, int]], columns: Columns) -> Encoding:
    """How the context columns become features, given the levels of those that are categories.

    Where every arm has its own weights, a column of ones is added to categories: without one nothing would
    distinguish arms at the reference levels.
    """
    if not columns.context:
        return Encoding((), {})
    crossing = getattr(columns.like, "crossing", None)
    if crossing is not None:
        known = Encoding(crossing.context, _known(columns, crossing.context), tuple(columns.cross))
        new = {(name, level): n for name in known.categories for level, n in levels[name].items()}
        warn_unseen({at: n for at, n in new.items() if at[1] not in known.categories[at[0]]}, known)
        return known
    found = settle(columns.context, levels, columns)
    if columns.items is not None or not found.categories or CONSTANT in columns.context:
        return found
    return replace(found, feature_names=(CONSTANT, *found.feature_names))


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """The arms of a log, and what is known of them."""

    arms: Arms
    """By id, in order."""
    features: Features | None = None
    """Features of every arm, shape (K, q), or None."""
    encoding: Encoding | None = None
    """How they came of the table of items."""


def items_of(given: Any, columns: Columns) -> Items:
    """The arms in a table of items: ids in the column that is called as in the log, or else by its name or place."""
    try:
        return _items(given if hasattr(given, "to_batches") else in_arrow(*opened(given)), columns)
    except InputError as error:
        raise InputError(f"the items: {error}") from error


def _items(table: Any, columns: Columns) -> Items:
    if not len(table):
        raise InputError("there are none, so there is no arm")
    check_once(table.column_names)
    name = id_column(table.column_names, columns)
    ids = plain_ids(table[name], name)
    check_unique(ids, name)
    plain = Columns(round="", chosen="", arm=name, features=columns.features, categories=_of_items(table, columns))
    for feature in columns.features or ():
        check_columns(table.column_names, {"features": feature})
    crossing = getattr(columns.like, "crossing", None)
    if crossing is not None:
        encoding = Encoding(crossing.items, _known(columns, crossing.items))
        for feature in encoding.columns:
            check_columns(table.column_names, {"like": feature})
        return Items(arms=Arms(ids), features=feature_rows(table, encoding), encoding=encoding)
    names, texts = feature_columns(table.schema, plain)
    check_gaps(table, names, rounds=False)
    encoding = settle(names, {text: level_counts(table[text], text) for text in texts}, plain)
    return Items(arms=Arms(ids), features=feature_rows(table, encoding), encoding=encoding)


def id_column(names: Sequence[str], columns: Columns) -> str:
    """Which column of the items has their ids.

    Examples
    --------
    >>> id_column(["price", "id"], Columns(arm="pick")), id_column(["sku", "price"], Columns(arm="pick"))
    ('id', 'sku')
    """
    likely = [name for name in (columns.arm, columns.offered, *_ID_NAMES) if name is not None and name in names]
    return (likely or [name for name in names if not ROW_NUMBER.fullmatch(name)] or list(names))[0]


def _of_items(table: Any, columns: Columns) -> list[str]:
    return [name for name in columns.categories or () if name in table.column_names]


def arms_of(columns: Columns) -> Items | None:
    """The arms, where they need not be looked for in the log: those of the items, or of what it is to be like."""
    if columns.items is not None:
        return items_of(columns.items, columns)
    if columns.like is None:
        return None
    import pyarrow as pa

    crossing = getattr(columns.like, "crossing", None)
    assert crossing is not None
    return Items(arms=Arms(plain_ids(pa.chunked_array([pa.array(crossing.arms)]), "arms"), "fit again with it"))


def arms_in(table: Any, columns: Columns) -> Items:
    """The arms that a log itself names, in order."""
    assert columns.arm is not None
    found = [plain_ids(table[columns.arm], columns.arm)]
    if columns.offered is not None:
        found.append(offers_of(table[columns.offered], columns.offered).ids)
    return Items(arms=Arms(distinct(found)))


def layout_of(items: Items, contexts: Features, places: Places | None = None) -> FactoredRows:
    """The rows of rounds with these contexts; without `places` every round offers all arms."""
    return FactoredRows(
        arms=items.arms.ids,
        contexts=contexts if contexts.shape[1] else None,
        items=items.features,
        item_names=None if items.encoding is None else items.encoding.feature_names,
        which=None if places is None else cast("Index | None", places.rows),
        bounds=None if places is None else places.offsets,
        n_rounds=len(contexts),
    )


def names_of(items: Items, encoding: Encoding) -> tuple[tuple[str, ...], Categories | None]:
    """What the features of a log are called, those of the context or else those of the items; categories of both."""
    of_items = Encoding((), {}) if items.encoding is None else items.encoding
    return encoding.feature_names or of_items.feature_names, {**of_items.categories, **encoding.categories} or None


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A log that was read from a table of one row per round."""

    log: BanditLog
    by: Ids | None
    """Which learner or restart each round belongs to, where that was asked for."""


def log_of_rounds(
    table: Any,
    columns: Columns,
    encoding: Encoding,
    items: Items,
    *,
    first_row: int = 0,
    part: bool = False,
    mark: str | None = None,
) -> Rounds:
    """Make a log of a table of one row per round.

    `first_row` is the number of the table's first row in its file, for messages. The rounds of a `part` of a file stay
    as they are, and `mark` is the separator of the ids that are offered.
    """
    keys = [name for name in (columns.round, columns.order_by, columns.by) if name]
    for name in keys:
        check_plain(table[name], name)
        check_complete(table[name], name, first_row, part=part)
    assert columns.arm is not None
    if columns.round and not part:
        _check_rounds(table, columns)
    offers = None if columns.offered is None else offers_of(table[columns.offered], columns.offered, first_row, mark)
    picks = plain_ids(table[columns.arm], columns.arm, first_row)
    places = places_of(items.arms, picks, offers, (columns.arm, columns.offered), first_row)
    contexts: Features = np.zeros((len(table), 0))
    if encoding.feature_names:
        check_memory(8 * len(table) * len(encoding.feature_names))
        contexts = feature_rows(with_ones(table, encoding), encoding, first_row=first_row, whole=False)
    offsets = places.offsets
    if offsets is None:
        offsets = np.arange(len(table) + 1, dtype=np.int64) * len(items.arms)
    ids = {name: arrow_values(table[name]) for name in keys}
    names, categories = names_of(items, encoding)
    times = None if columns.order_by is None else as_times(ids[columns.order_by], columns.order_by, first_row)
    log = BanditLog(
        layout_of(items, contexts, places),
        offsets,
        places.chosen,
        feature_names=names,
        round_ids=ids[columns.round] if columns.round else None,
        times=times,
        categories=categories,
    )
    by = ids[columns.by] if columns.by else None
    if part or times is None or not (times[1:] < times[:-1]).any():
        return Rounds(log=log, by=by)
    order = np.argsort(times, kind="stable")
    return Rounds(log=log[order], by=None if by is None else by[order])


def rounds_of_frame(frame: Any, columns: Columns) -> Rounds:
    """Make a log of a table of pandas, polars or pyarrow with one row per round."""
    table, names = opened(frame)
    users, of_users = None, list[str]()
    if columns.users is not None:
        given, known = opened(columns.users)
        users, columns = joined_by(in_arrow(given, known), names, columns)
        of_users = users.names
    elif columns.user is not None:
        raise InputError("`user` is the id of a round's user: pass the table of them as `users`")
    columns = resolved([*names, *of_users], columns)
    read = in_table([*names, *of_users], columns)
    found = in_arrow(table, list(dict.fromkeys(name for name in (*read.keys, *read.context) if name in names)))
    if users is not None:
        known = [name for name in read.context if name in of_users]
        for field, column in zip(users.fields(known), users.look_up(found[users.key], known, 0), strict=True):
            found = found.append_column(field, [column])
    return rounds_of_table(found, columns)


def rounds_of_table(table: Any, columns: Columns) -> Rounds:
    """Make a log of a whole table of one row per round; `columns` are `resolved`."""
    if not len(table):
        raise InputError("the table has no rows: there is no round")
    texts = category_columns(table.schema, columns)
    check_gaps(table, [name for name in columns.context if name in table.column_names], free=False)
    encoding = context_encoding({name: level_counts(table[name], name) for name in texts}, columns)
    items = arms_of(columns) or arms_in(table, columns)
    return log_of_rounds(table, columns, encoding, items)


def _check_rounds(table: Any, columns: Columns) -> None:
    """Refuse repeated ids of rounds: then a row is not a round. Warn of numbers that are out of order."""
    import pyarrow.compute as pc

    keys = [columns.by, columns.round] if columns.by else [columns.round]
    tally = table.select(keys).group_by(keys).aggregate([([], "count_all")])
    most = int(np.argmax(arrow_values(tally["count_all"])))
    if tally["count_all"][most].as_py() == 1:
        seen = Counts()
        seen.see(table[columns.round].combine_chunks())
        if seen.found and columns.order_by is None and columns.by is None:
            warn_rounds(columns.round)
        return
    again = tally[columns.round][most]
    row = pc.index(table[columns.round], value=again).as_py()
    raise InputError(
        f"column {columns.round!r} has {again.as_py()!r} {tally['count_all'][most].as_py()} times, first in "
        f"{place(row)}: here a row is a round; for a table of one row per offered arm leave `context`, `items` and "
        "`offered` out"
    )
