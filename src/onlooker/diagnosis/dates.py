"""Rounds as dates, where a log knows the times of its rounds."""

from __future__ import annotations

import numpy as np

from onlooker.diagnosis.result import Diagnosis, RoundEstimate
from onlooker.logs.log import BanditLog

LONG = np.timedelta64(4, "D")
"""Logs that last longer than this have days; shorter ones have minutes too."""


def date_of(log: BanditLog, place: int) -> str | None:
    """When a round was, as a day, or to the minute in a log of few days; None where the log has no dates.

    Examples
    --------
    >>> days = np.arange("2024-02-27", "2024-03-04", dtype="datetime64[D]")
    >>> log = BanditLog(np.ones((6, 1)), np.arange(7), np.zeros(6, dtype=int), times=days)
    >>> date_of(log, 2), date_of(log[:2], 1)
    ('2024-02-29', '2024-02-28 00:00')
    """
    times = log.times
    if times is None or not len(times) or times.dtype.kind != "M":
        return None
    if times[-1] - times[0] > LONG:
        return str(times[place].astype("datetime64[D]"))
    return str(times[place].astype("datetime64[m]")).replace("T", " ")


def span_of(log: BanditLog) -> str | None:
    """From when to when a log is.

    Examples
    --------
    >>> days = np.arange("2024-02-27", "2024-03-04", dtype="datetime64[D]")
    >>> span_of(BanditLog(np.ones((6, 1)), np.arange(7), np.zeros(6, dtype=int), times=days))
    '2024-02-27 to 2024-03-03'
    """
    first = date_of(log, 0)
    return None if first is None else f"{first} to {date_of(log, log.n_rounds - 1)}"


def dates_of(found: Diagnosis, log: BanditLog) -> str:
    """What a diagnosis says of rounds, in dates; empty where there are none.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, diagnose, simulate
    >>> plain = simulate(Environment(3, 5), LinUCB(), n_rounds=400).log
    >>> days = np.datetime64("2024-01-01") + np.arange(400)
    >>> dated = BanditLog(plain.features, plain.offsets, plain.chosen, times=days)
    >>> dates_of(diagnose(dated), dated)
    'In dates: the log is from 2024-01-01 to 2025-02-03.'
    >>> dates_of(diagnose(plain), plain)
    ''
    """
    span = span_of(log)
    if span is None:
        return ""
    said = [f"the log is from {span}"]
    if found.changed is not None:
        said.append(f"the change was at about {_interval(log, found.changed)}")
    elif found.settled is not None and found.settled.round:
        said.append(f"it is stable since about {_interval(log, found.settled)}")
    return f"In dates: {'; '.join(said)}."


def _interval(log: BanditLog, place: RoundEstimate) -> str:
    low, high = (date_of(log, min(at, log.n_rounds - 1)) for at in (place.low, place.high))
    between = "" if low == high else f" ({low} to {high})"
    return f"{date_of(log, place.round)}{between}"
