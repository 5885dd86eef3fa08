"""Logs as long tables, one row per offered arm, for the formats that write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Ids, Index
from onlooker.logs import ragged
from onlooker.logs.columns import OFFER_PROBABILITY, POSSIBLE, ROW_NUMBER, is_outcome
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.long_tables import known_picks
from onlooker.logs.ragged import slate_positions

ROUND, ARM, CHOSEN, POSITION = "round", "arm", "chosen", "position"
"""What the columns are called unless the caller names others."""


def long_tables(logs: Iterable[BanditLog], *, widen: bool, values: int = ragged.BLOCK_VALUES) -> Iterator[Any]:
    """Logs as Arrow tables of whole rounds, about `values` features each; default names are used where there are none.

    `widen` makes float32 float64: the shortest text of 0.1 as float32 would come back as another float64.
    """
    first_round, slates = 0, None
    for log in logs:
        positions = slate_positions(log.round_ids, log.n_arms)
        slates = positions is not None if slates is None else slates
        if positions is not None and not slates:
            raise InputError("slates begin in a later part of the log: write lists (`onlooker convert` to .parquet)")
        if slates and positions is None:
            positions = np.ones(log.n_rounds, dtype=np.int64)
        yield from _tables(log, first_round, positions, values, widen=widen)
        first_round += log.n_rounds


def _tables(log: BanditLog, first_round: int, positions: Index | None, values: int, *, widen: bool) -> Iterator[Any]:
    import pyarrow as pa

    features = feature_labels(log.weight_names, log.n_features)
    ids = np.arange(first_round, first_round + log.n_rounds) if log.round_ids is None else log.round_ids
    rounds = id_array(ids, "round_ids")
    named = log.arm_ids
    arms = None if named is None else id_array(named, "arm_ids")
    _check_writable(features, rounds, arms, positions)
    for start, stop in ragged.blocks(log.offsets, log.n_features, values):
        part = log[start:stop]
        columns = {ROUND: rounds.take(np.repeat(np.arange(start, stop), part.n_arms))}
        if arms is not None:
            columns[ARM] = arms.slice(log.offsets[start], len(part.features))
        columns |= {name: pa.array(values) for name, values in known_picks(part, sets=log.possible is not None).items()}
        if positions is not None:
            columns[POSITION] = pa.array(np.repeat(positions[start:stop], part.n_arms))
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


def _check_writable(features: Sequence[str], round_ids: Any, arm_ids: Any, positions: Index | None) -> None:
    """Refuse what a long table cannot represent: it needs ids of rounds, names of features, and no empty ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    taken = {ROUND, ARM, CHOSEN} if positions is None else {ROUND, ARM, CHOSEN, POSITION}
    for name in features:
        if name in {*taken, POSSIBLE, OFFER_PROBABILITY} or is_outcome(name) or ROW_NUMBER.fullmatch(name):
            raise InputError(f"a long table cannot hold a feature called {name!r}: rename it or write .parquet")
    for name, ids in {"round_ids": round_ids, "arm_ids": arm_ids}.items():
        if ids is not None and ids.type == "string" and pc.index(ids, value="").as_py() >= 0:
            raise InputError(f"{name} has an empty id, which a long table cannot hold: fill it in or write .parquet")
    if positions is not None:
        round_ids = round_ids.filter(pa.array(positions == 1))
    tally = pc.value_counts(round_ids)
    most = int(np.argmax(arrow_values(tally.field("counts"))))
    times = tally.field("counts")[most].as_py()
    if times > 1:
        twice = tally.field("values")[most].as_py()
        raise InputError(
            f"round id {twice!r} stands for {times} rounds, and a long table has one id per round: make ids distinct, "
            "or write lists (`onlooker convert` to .parquet)"
        )
