"""Long tables, one row per offered arm: what the formats that hold one have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onlooker import ragged
from onlooker.errors import InputError
from onlooker.formats.lists import is_number
from onlooker.frames import OUTCOMES, ROW_NUMBER, check_columns, default_features
from onlooker.log import BanditLog, feature_labels
from onlooker.types import Ids

ROUND, ARM, CHOSEN = "round", "arm", "chosen"
"""What the columns are called unless the reader is told otherwise."""


def arm_column(names: Sequence[str], arm: str | None) -> str | None:
    """Column of the arms' ids: the one asked for, or else `arm` where there is one."""
    return ARM if arm is None and ARM in names else arm


def feature_columns(schema: Any, keys: Sequence[str | None]) -> list[str]:
    """Columns of an Arrow schema that are features unless the user names them."""
    return default_features({field.name: is_number(field.type) for field in schema}, keys)


def check_table(
    names: Sequence[str],
    *,
    round: str,
    chosen: str,
    arm: str | None,
    features: Sequence[str] | None,
    order_by: str | None,
) -> list[str]:
    """Every wanted column is there, and no column is there twice; give those that are no features."""
    wanted = {"round": round, "chosen": chosen, "arm": arm, "order_by": order_by}
    check_columns(names, wanted)
    for name in features or ():
        check_columns(names, {"features": name})
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"has the column {twice[0]!r} twice: rename one of them")
    return [name for name in wanted.values() if name is not None]


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
        if name in {ROUND, ARM, CHOSEN, *OUTCOMES} or ROW_NUMBER.fullmatch(name):
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
