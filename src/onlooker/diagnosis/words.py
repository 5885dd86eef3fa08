"""The verdicts in plain sentences."""

from __future__ import annotations

from onlooker.diagnosis.bins import Diagnostics, Estimate
from onlooker.diagnosis.result import SMALLEST, RoundEstimate, p_words
from onlooker.diagnosis.settling import MATERIAL


def settled(since: RoundEstimate, agreement: Estimate, chance: float, level: float) -> str:
    """Of a learner that one policy predicts."""
    if since.round == 0:
        opening = "Settled from the start: one policy predicts the picks of the whole log as well as those of its end"
    else:
        opening = (
            f"Settled since about round {_place(since, level)}: from this round on, one policy predicts the picks as "
            f"well as it does at the end, to within {MATERIAL:.0%}"
        )
    return f"{opening}. {_late(agreement, chance, level)}"


def exploring(since: RoundEstimate, found: Diagnostics, agreement: Estimate, chance: float, level: float) -> str:
    """Of a learner whose policy has not been the same for long."""
    rise = found.predictability_rise
    return (
        f"Still exploring: the policy of the last rounds fits only since about round {_place(since, level)}, less than "
        f"half of the log. From its first to its last 30% the picks became {100 * rise.value:.0f} points easier to "
        f"predict ({_percent(level)} interval {100 * rise.low:.0f} to {100 * rise.high:.0f}). "
        f"{_late(agreement, chance, level)}"
    )


def drifting(
    place: RoundEstimate, before: float, p_value: float, agreement: Estimate, chance: float, level: float
) -> str:
    """Of a learner that followed another policy before; `before` is the final policy's agreement with those picks."""
    return (
        f"Drifting: another policy was at work until about round {_place(place, level)}, p {_p(p_value)}. "
        f"{_late(agreement, chance, level)} Before the change, the same policy predicts {before:.1%} of the picks."
    )


def no_preference(p_value: float, agreement: Estimate, chance: float, level: float) -> str:
    """Of picks that look uniform."""
    return f"No preference found: the picks look uniformly random (p {_p(p_value)}). {_late(agreement, chance, level)}"


def unpredictable(p_value: float, agreement: Estimate, chance: float, level: float) -> str:
    """Of picks that are not uniform, but not predictable either."""
    return (
        f"Not enough evidence: the picks are not quite uniform (p {_p(p_value)}), but no policy fitted to late "
        f"rounds predicts others clearly better than random guessing. {_late(agreement, chance, level)}"
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


def _p(p_value: float) -> str:
    if p_value < SMALLEST:
        return p_words(p_value)
    return f"= {p_value:.2f}" if p_value >= 0.01 else f"= {p_value:.1e}"
