"""Both answers in words: what the learner values, then how it picks; and the dates of its rounds, where known."""

from __future__ import annotations

import numpy as np

from onlooker.base.text import SMALLEST_P, p_words
from onlooker.diagnosis.exploration import Exploration
from onlooker.diagnosis.predictability import MATERIAL, Diagnostics, Estimate
from onlooker.diagnosis.result import Diagnosis, RoundEstimate
from onlooker.logs.log import BanditLog


def stable(since: RoundEstimate, agreement: Estimate, chance: float, level: float, *, rising: bool) -> str:
    """Of a learner that one policy explains; `rising` if that policy fits early picks less well than late ones."""
    if since.round == 0 and rising:
        opening = (
            "What it values is stable: the picks are consistent with one policy from the start. It fits the early "
            "picks less well, as the learner explored more then or was still learning"
        )
    elif since.round == 0:
        opening = "What it values is stable from the start: one policy explains the picks of the whole log"
    else:
        opening = (
            f"What it values is stable since about round {_place(since, level)}: from this round on, one policy "
            "explains the picks"
        )
    return f"{opening}. {_late(agreement, chance, level)}"


def moving(share: float, agreement: Estimate, chance: float, level: float) -> str:
    """Of a learner whose weights move at the end; `share` is what following them would add."""
    return (
        "What it values is moving: at the end of the log no fixed policy explains the picks, and one that follows them "
        f"would predict {share:.0%} more. {_late(agreement, chance, level)}"
    )


def learning(since: RoundEstimate, found: Diagnostics, agreement: Estimate, chance: float, level: float) -> str:
    """Of a learner whose policy has not been the same for long."""
    rise = found.predictability_rise
    return (
        f"What it values is moving: the policy of the last rounds fits only since about round {_place(since, level)}, "
        f"late in the log. From its first to its last 30% the picks became {100 * rise.value:.0f} points easier to "
        f"predict ({_percent(level)} interval {100 * rise.low:.0f} to {100 * rise.high:.0f}). "
        f"{_late(agreement, chance, level)}"
    )


def changed(
    place: RoundEstimate, before: float, p_value: float, agreement: Estimate, chance: float, level: float
) -> str:
    """Of a learner that followed another policy before; `before` is the final policy's agreement with those picks."""
    return (
        f"What it values changed at about round {_place(place, level)}, p {p_value_words(p_value)}. "
        f"{_late(agreement, chance, level)} Before the change, the same policy predicts {before:.1%} of the picks."
    )


def no_preference(p_value: float, agreement: Estimate, chance: float, level: float) -> str:
    """Of picks that look uniform."""
    return (
        f"No preference found: the picks look uniformly random (p {p_value_words(p_value)}). "
        f"{_late(agreement, chance, level)}"
    )


def unpredictable(p_value: float, agreement: Estimate, chance: float, level: float) -> str:
    """Of picks that are not uniform, but not predictable either."""
    return (
        f"Not enough evidence: the picks are not quite uniform (p {p_value_words(p_value)}), but no policy fitted to "
        f"late rounds predicts others clearly better than random guessing. {_late(agreement, chance, level)}"
    )


def exploring(found: Exploration, level: float) -> str:
    """How it picks; empty where there is no best guess.

    Examples
    --------
    >>> exploring(Exploration(share=0.2, low=0.18, high=0.22, trend="steady"), 0.95)
    'How it picks: 20.0% of recent picks are not its best guess (95% interval 18.0% to 22.0%), a steady share.'
    """
    if found.share is None or found.low is None or found.high is None:
        return ""
    trend = {"steady": "a steady share", "rising": "a rising share", "falling": "a falling share", None: "now"}
    return (
        f"How it picks: {found.share:.1%} of recent picks are not its best guess ({_percent(level)} interval "
        f"{found.low:.1%} to {found.high:.1%}), {trend[found.trend]}."
    )


def slight(place: RoundEstimate, share: float) -> str:
    """Of a change that is too small to count."""
    return (
        f"a slight change at about round {place.round:,} costs the policy before it {share:.1%} of what a policy "
        f"predicts: less than the {MATERIAL:.0%} that counts as a change"
    )


def habitual(share: float) -> str:
    """Of picks that follow their position."""
    return (
        f"about {share:.0%} of the picks repeat the position of the pick before, more than the features explain: a "
        "rule or habit beside the policy, or a feature that the log lacks. Check how positions are assigned"
    )


def two_at_once(share: float) -> str:
    """Of picks that two policies explain better than one."""
    return (
        f"the picks look like two policies at once: about {share:.0%} of the rounds follow another one, as with A/B "
        "buckets or a fallback. The weights mix both; if a column says which rounds are whose, diagnose them apart "
        "(--by COLUMN)"
    )


def under_way(rounds: int) -> str:
    """Of a log whose first rounds are like its last."""
    return (
        f"the first {rounds:,} rounds are already about as predictable as the last: the learner learned within them, "
        "does not learn, or began before the log. In the last case use --burn-in auto: the burn-in rule N^0.9 and "
        "tracking suppose that it began with round 0"
    )


def _late(agreement: Estimate, chance: float, level: float) -> str:
    return (
        f"In the last 30% of the rounds, a policy predicts {agreement.value:.1%} of held-out picks "
        f"({_percent(level)} interval {agreement.low:.1%} to {agreement.high:.1%}); "
        f"random guessing gets {chance:.1%}."
    )


def _place(place: RoundEstimate, level: float) -> str:
    named = "" if place.round_id is None else f", id {place.round_id}"
    return f"{place.round:,}{named} ({_percent(level)} interval {place.low:,} to {place.high:,})"


def _percent(level: float) -> str:
    return f"{100 * level:g}%"


def p_value_words(p_value: float) -> str:
    """A p-value within a sentence."""
    if p_value < SMALLEST_P:
        return p_words(p_value)
    return f"= {p_value:.2f}" if p_value >= 0.01 else f"= {p_value:.1e}"


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
