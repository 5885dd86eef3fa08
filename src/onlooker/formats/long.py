"""Logs as long tables, one row per offered arm, for the formats that write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Ids
from onlooker.logs import ragged
from onlooker.logs.columns import OFFER_PROBABILITY, POSSIBLE, ROW_NUMBER, is_outcome
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.long_tables import known_picks

ROUND, ARM, CHOSEN = "round", "arm", "chosen"
"""What the columns are called unless the caller names others."""


def long_tables(logs: Iterable[BanditLog], *, widen: bool, values: int = ragged.BLOCK_VALUES) -> Iterator[Any]:
    """Logs as Arrow tables of whole rounds, about `values` features each; names are made up where there are none.

    `widen` makes float32 float64: the shortest text of 0.1 as float32 would come back as another float64.
    """
    first_round = 0
    for log in logs:
        yield from _tables(log, first_round, values, widen=widen)
        first_round += log.n_rounds


def _tables(log: BanditLog, first_round: int, values: int, *, widen: bool) -> Iterator[Any]:
    import pyarrow as pa

    features = feature_labels(log.weight_names, log.n_features)
    ids = np.arange(first_round, first_round + log.n_rounds) if log.round_ids is None else log.round_ids
    rounds = id_array(ids, "round_ids")
    named = log.arm_ids
    arms = None if named is None else id_array(named, "arm_ids")
    _check_writable(features, rounds, arms)
    for start, stop in ragged.blocks(log.offsets, log.n_features, values):
        part = log[start:stop]
        columns = {ROUND: rounds.take(np.repeat(np.arange(start, stop), part.n_arms))}
        if arms is not None:
            columns[ARM] = arms.slice(log.offsets[start], len(part.features))
        columns |= {name: pa.array(values) for name, values in known_picks(part, sets=log.possible is not None).items()}
        rows = part.dense
        rows = rows.astype(np.float64, copy=False) if widen else rows
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
        if name in {ROUND, ARM, CHOSEN, POSSIBLE, OFFER_PROBABILITY} or is_outcome(name) or ROW_NUMBER.fullmatch(name):
            raise InputError(f"a long table cannot hold a feature called {name!r}: rename it or write .parquet")
    for name, ids in {"round_ids": round_ids, "arm_ids": arm_ids}.items():
        if ids is not None and ids.type == "string" and pc.index(ids, value="").as_py() >= 0:
            raise InputError(f"{name} has an empty id, which a long table cannot hold: fill it in or write .parquet")
    tally = pc.value_counts(round_ids)
    most = int(np.argmax(tally.field("counts").to_numpy()))
    times = tally.field("counts")[most].as_py()
    if times > 1:
        twice = tally.field("values")[most].as_py()
        raise InputError(
            f"round id {twice!r} stands for {times} rounds, as in a slate, and a long table has one id per round: "
            "make ids distinct, or write lists (`onlooker convert` to .parquet)"
        )
