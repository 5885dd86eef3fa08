"""A diagnosis: the verdict first, then the figures behind it; and its rounds as dates, where the log has times."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from onlooker.base.notebook import InHtml, Pictured
from onlooker.base.text import p_words, text_table
from onlooker.diagnosis.picking import Exploration
from onlooker.diagnosis.predictability import Bin, Estimate
from onlooker.logs.log import BanditLog

State = Literal["stable", "moving", "changed", "no preference", "not enough evidence"]


@dataclass(frozen=True, kw_only=True)
class Values:
    """What the learner values, over time."""

    state: State
    """*stable*, *moving*, *changed*, *no preference* or *not enough evidence*."""
    since: int | None = None
    """First round from which on one policy explains the picks; None unless *stable* or *changed*."""
    changed_at: int | None = None
    """First round of the new policy; None unless *changed*."""


@dataclass(frozen=True, kw_only=True)
class RoundEstimate:
    """A round of the log with its interval, counted from 0; ids are those of the log, None where it has none."""

    round: int
    """Estimate."""
    low: int
    """Lower end of the interval."""
    high: int
    """Upper end."""
    round_id: str | int | None = None
    """Id of the round."""
    low_id: str | int | None = None
    """Id of the lower end."""
    high_id: str | int | None = None
    """Id of the upper end."""


@dataclass(frozen=True, kw_only=True)
class Test:
    """A hypothesis that was tested."""

    __test__ = False  # not a test of ours: pytest would collect it by its name

    hypothesis: str
    """A small p-value is evidence against it."""
    statistic: float
    """Its size."""
    distribution: str
    """What the statistic is compared with."""
    p_value: float
    """Chance of a statistic as large if the hypothesis holds."""
    least_p: float = 0.0
    """Smallest p-value that can be found: above 0 where the statistic is compared with simulated ones."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """How well the final policy fits a short stretch of the log."""

    start: int
    """First round."""
    stop: int
    """Round after the last."""
    share: Estimate
    """Gain of the final policy over random guessing, relative to the end of the log: 1 is as good as there."""
    fitted: float
    """The closest curve that never falls."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Pictured, InHtml):
    """What a log shows about its learner; printing it shows the verdict and a table.

    It answers two questions: what the learner values, and how it picks.
    """

    verdict: State
    """What it values, in a word or three: `values.state`."""
    values: Values
    """Whether what it values is stable, moves or changed, and since when."""
    exploration: Exploration
    """How it picks: the share of picks now that are not its best guess."""
    from_start: bool
    """Whether the learner was stable when the log began."""
    sentence: str
    """Both answers in words, with their figures."""
    settled: RoundEstimate | None
    """`values.since` with its interval; None unless *stable*."""
    changed: RoundEstimate | None
    """`values.changed_at` with its interval; None unless *changed*."""
    level: float
    """Coverage that the intervals aim for."""
    n_rounds: int
    """Rounds in the log."""
    n_choices: int
    """Rounds that offer arms which differ: only those are used."""
    rank: int
    """Directions of theta that the rounds identify."""
    bins: tuple[Bin, ...]
    """Predictability over time; empty where there is too little to look at."""
    matrix: tuple[tuple[float, ...], ...]
    """Agreement of the policy of bin i with the picks of bin j."""
    predictability_rise: Estimate | None
    """Predictability of the last 30% of the bins less that of the first 30%."""
    late_gap: Estimate | None
    """The late policy's agreement with the last 30% of the bins less that with the first 30%."""
    stability: tuple[Block, ...]
    """How well the final policy fits, block by block."""
    tests: tuple[Test, ...]
    """Hypotheses behind the verdict."""
    notes: tuple[str, ...]
    """What to know before relying on it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        lines = [self.sentence]
        if self.bins:
            percent = f"{100 * self.level:g}%"
            rows = [
                (f"{b.start:,} to {b.stop - 1:,}", f"{b.chance:.3f}", _with_ends(b.own), _with_ends(b.late))
                for b in self.bins
            ]
            heading = ("rounds", "chance", f"predictability {percent}", f"final policy {percent}")
            lines += ["", *text_table([heading, *rows], ">  >6  <20  <")]
        for name, contrast in (("predictability", self.predictability_rise), ("final policy", self.late_gap)):
            if contrast is not None:
                lines.append(f"{name}, last 30% less first 30%: {contrast.value:+.3f} {_ends(contrast)}")
        lines += ["tests; a small p is evidence against the hypothesis"] if self.tests else []
        lines += [
            f"test: {test.hypothesis}: {test.distribution} {test.statistic:.2f}, "
            f"p {p_words(test.p_value, test.least_p)}"
            for test in self.tests
        ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _with_ends(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} {_ends(estimate)}"


def _ends(estimate: Estimate) -> str:
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


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
    if times is None or not log.dated:
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
