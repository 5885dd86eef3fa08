"""Long tables, one row per offered arm: what the formats that hold one have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onlooker import ragged
from onlooker.errors import InputError
from onlooker.formats.lists import is_number
from onlooker.log import BanditLog, feature_labels
from onlooker.types import Ids

ROUND, ARM, CHOSEN = "round", "arm", "chosen"
"""What the columns are called unless the reader is told otherwise."""

_OUTCOMES = frozenset({"reward", "rewards", "propensity", "propensity_score", "pscore"})
"""Columns that an observer does not see, so they are no features unless asked for."""

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def arm_column(names: Sequence[str], arm: str | None) -> str | None:
    """Column of the arms' ids: the one asked for, or else `arm` where there is one."""
    return ARM if arm is None and ARM in names else arm


def feature_columns(schema: Any, keys: Sequence[str | None]) -> list[str]:
    """Numeric columns of an Arrow schema that are neither keys nor outcomes nor a saved row number."""
    skipped = {*keys, *_OUTCOMES}
    names = [field.name for field in schema if field.name not in skipped and is_number(field.type)]
    names = [name for name in names if not _PANDAS_INDEX.fullmatch(name)]
    if not names:
        raise InputError(f"has no numeric column besides {', '.join(key for key in keys if key)}: name the features")
    return names


def check_columns(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Every wanted column is there, and no column is there twice."""
    for name in wanted:
        if name not in names:
            raise InputError(f"has no column {name!r}: it has {', '.join(map(repr, names[:20]))}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"has the column {twice[0]!r} twice: rename one of them")


def long_tables(log: BanditLog) -> Iterator[Any]:
    """The log as Arrow tables of whole rounds; round and feature names are made up where there are none."""
    import pyarrow as pa

    features = feature_labels(log.feature_names, log.n_features)
    ids = np.arange(log.n_rounds) if log.round_ids is None else log.round_ids
    rounds = id_array(ids, "round_ids")
    arms = None if log.arm_ids is None else id_array(log.arm_ids, "arm_ids")
    _check_writable(features, rounds, arms)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        chosen = np.zeros(len(part.features), dtype=np.int8)
        chosen[part.chosen_rows] = 1
        columns = {ROUND: rounds.take(np.repeat(np.arange(start, stop), part.n_arms))}
        if arms is not None:
            columns[ARM] = arms.slice(log.offsets[start], len(part.features))
        columns[CHOSEN] = pa.array(chosen)
        # float32 is widened: the shortest text of 0.1 as float32 would come back as another float64.
        rows = part.features.astype(np.float64, copy=False)
        yield pa.table(columns | {name: pa.array(rows[:, j]) for j, name in enumerate(features)})


def id_array(ids: Ids, name: str) -> Any:
    """Ids as an Arrow array."""
    import pyarrow as pa

    try:
        array = pa.array(ids)
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"{name} cannot be written: make them all text or all whole numbers of 64 bits") from error
    if array.null_count:
        raise InputError(f"{name} has a missing id: give every one a name")
    return array


def _check_writable(features: Sequence[str], round_ids: Any, arm_ids: Any) -> None:
    """A long table tells rounds apart by their ids, features from the rest by their names, and a blank is a gap."""
    import pyarrow.compute as pc

    for name in features:
        if name in {ROUND, ARM, CHOSEN, *_OUTCOMES} or _PANDAS_INDEX.fullmatch(name):
            raise InputError(f"a long table cannot hold a feature called {name!r}: rename it or write .parquet")
    for name, ids in {"round_ids": round_ids, "arm_ids": arm_ids}.items():
        if ids is not None and ids.type == "string" and pc.index(ids, value="").as_py() >= 0:
            raise InputError(f"{name} has an empty id, which a long table cannot hold: fill it in or write .parquet")
    tally = pc.value_counts(round_ids)
    most = int(np.argmax(tally.field("counts").to_numpy()))
    times = tally.field("counts")[most].as_py()
    if times > 1:
        twice = tally.field("values")[most].as_py()
        raise InputError(f"round id {twice!r} stands for {times} rounds: make ids distinct or write .parquet")
