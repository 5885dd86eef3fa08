"""From the findings to the verdict, and to the sentences that say it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onlooker.base.checks import as_level, as_whole, counted
from onlooker.base.memory_limit import FITTING
from onlooker.base.types import Index, Matrix
from onlooker.diagnosis.bins import Diagnostics, Estimate, proportion
from onlooker.diagnosis.findings import Findings, blocks_of, find_all, round_of, tests_of, usable_bins
from onlooker.diagnosis.policies import LATE
from onlooker.diagnosis.result import SMALLEST, Diagnosis, RoundEstimate, Verdict, p_words
from onlooker.diagnosis.settling import LEAST_P, MATERIAL
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import check_room, summarise_parts


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


ROUNDING = 4.0
"""Arms that differ by less than so many units in the last place do not differ."""

NOTHING = 1e-9
"""Nor do those that differ by less than this part of what is usual for the feature."""

USUAL = (0.1, 10.0)
"""Features whose arms usually differ by as much as this are left as they are.

The penalty of the fits is the paper's, a fixed number: it suits features of about unit size, and the features of all
simulated logs that verdicts were calibrated on lie well within. Others are brought to 1, so that units do not matter.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """The rounds of a log that are analysed."""

    log: BanditLog
    """Rounds that offer arms which differ."""
    rounds: Index
    """Which rounds of the whole log those are."""
    one_arm: int
    """Rounds ignored, as they offer a single arm."""
    alike: int
    """Rounds ignored, as no feature differs between their arms."""


def find_choices(log: BanditLog) -> Choices:
    """Keep the rounds that offer a choice, and measure unusually large or small features in units of their own.

    Examples
    --------
    >>> X = np.array([[[1.0], [0.0]], [[2.0], [2.0]], [[0.0], [3.0]]])
    >>> found = find_choices(BanditLog.from_dense(1e-6 * X, chosen=[0, 0, 1]))
    >>> found.rounds, found.alike, found.log.features.ravel()
    (array([0, 2]), 1, array([0.5, 0. , 0. , 1.5]))
    """
    several = log.n_arms > 1
    ranges = _ranges(log)
    usual = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in ranges.T])
    differs = (ranges > NOTHING * usual).any(axis=1)
    rounds = np.flatnonzero(differs)
    kept = log if len(rounds) == log.n_rounds else log[rounds]
    scale = np.where((usual < USUAL[0]) | (usual > USUAL[1]), usual, 1.0)
    if (scale != 1).any():
        # Divided as float64, which holds what float32 would round to nothing.
        features = np.divide(kept.dense, scale, out=np.empty_like(kept.dense), casting="same_kind")
        kept = kept.with_features(features, kept.feature_names)
    return Choices(
        log=kept,
        rounds=rounds,
        one_arm=int(np.count_nonzero(~several)),
        alike=int(np.count_nonzero(several & ~differs)),
    )


def _ranges(log: BanditLog) -> Matrix:
    """By how much every feature differs between the arms of every round, shape (N, d); rounding is no difference."""
    ranges = np.zeros((log.n_rounds, log.n_features))
    least = ROUNDING * float(np.finfo(log.features.dtype).eps)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        ends = (np.maximum, np.minimum)
        high, low = (end.reduceat(part.dense, part.offsets[:-1], axis=0).astype(np.float64) for end in ends)
        gap = high - low
        ranges[start:stop] = np.where(gap > least * np.maximum(np.abs(high), np.abs(low)), gap, 0.0)
    return ranges


ROUNDS_PER_DIRECTION, LEAST_ROUNDS = 20, 100
"""Fewer rounds with a choice than this for every direction of theta, or than this at all, and no verdict is given."""

LONGEST = 0.5
"""A learner that settled later than this part of the log is called still exploring, unless it did so at once.

Chosen by looking: LinTS with 20 features and 50 arms comes to it after some 1,000 rounds.
"""


def diagnose(log: BanditLog | Parts, bins: int = 10, *, level: float = 0.95) -> Diagnosis:
    """Judge whether and since when the learner behind a log has settled, from offers and picks alone.

    Nothing in it is random: the same log gives the same diagnosis.

    Parameters
    ----------
    log
        Offers and picks, oldest round first. One that is not in memory, as `scan_log` gives it, is judged by every so
        many of its rounds, as many as fit into memory; the notes say so, and rounds are those of the whole log.
    bins
        Equal stretches of time to compare; fewer are used where they would be too short.
    level
        Coverage of the intervals; 1 less it is the significance that the tests ask for.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB, UniformRandom
    >>> from onlooker.simulation.play import simulate
    >>> diagnose(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log).verdict
    'settled'
    >>> diagnose(simulate(Environment(5, 10), UniformRandom(), n_rounds=2000).log).verdict
    'no preference found'
    """
    n_bins = as_whole(bins, "bins", least=2)
    as_level(level)
    check_room(log, FITTING)
    if not isinstance(log, Parts):
        return _diagnosed(as_log(log), n_bins, level)
    seen = summarise_parts(log)
    diagnosis = _diagnosed(seen.sample, n_bins, level, stride=seen.stride)
    if seen.stride == 1:
        return diagnosis
    note = f"judged by every {_ordinal(seen.stride)} round of {seen.n_rounds:,}, as many as fit into memory"
    return replace(diagnosis, n_rounds=seen.n_rounds, notes=(note, *diagnosis.notes))


def _diagnosed(log: BanditLog, n_bins: int, level: float, *, stride: int = 1) -> Diagnosis:
    """Diagnose a log whose rounds stand `stride` apart in the one to speak of."""
    found = find_choices(log)
    choices, rounds = found.log, stride * found.rounds
    notes = []
    if found.one_arm:
        notes.append(
            f"in {counted(found.one_arm, 'round')} a single arm was offered, so there was no choice. "
            "Such rounds are left out; no action is needed"
        )
    if not len(rounds) and found.alike:
        sentence = "Not enough evidence: no feature differs between the arms of any round."
        return _too_little(log, 0, 0, level, sentence, notes)
    if found.alike:
        notes.append(f"{found.alike:,} rounds offer arms with the same features, and are ignored")
    if len(rounds) < LEAST_ROUNDS:
        sentence = (
            f"Not enough evidence: {len(rounds):,} of the log's rounds offer a choice, and a verdict needs "
            f"{LEAST_ROUNDS} at least."
        )
        return _too_little(log, len(rounds), 0, level, sentence, notes)
    preference, bounds = usable_bins(choices, n_bins)
    rank = preference.rank
    if len(rounds) < ROUNDS_PER_DIRECTION * rank:
        sentence = (
            f"Not enough evidence: {len(rounds):,} of the log's rounds offer a choice, and a verdict on {rank} "
            f"features needs {ROUNDS_PER_DIRECTION * rank:,} at least."
        )
        return _too_little(log, len(rounds), rank, level, sentence, notes)
    if len(bounds) - 1 < n_bins:
        notes.append(f"{len(bounds) - 1} bins instead of {n_bins}, as shorter ones would hold too few rounds")
    findings = find_all(choices, rounds, preference, bounds, level)
    return _judged(log, choices, findings, level, notes)


def _too_little(log: BanditLog, n_choices: int, rank: int, level: float, sentence: str, notes: list[str]) -> Diagnosis:
    return Diagnosis(
        verdict="not enough evidence",
        from_start=False,
        sentence=sentence,
        settled=None,
        changed=None,
        level=level,
        n_rounds=log.n_rounds,
        n_choices=n_choices,
        rank=rank,
        bins=(),
        matrix=(),
        predictability_rise=None,
        late_gap=None,
        stability=(),
        tests=(),
        notes=tuple(notes),
    )


def _judged(log: BanditLog, choices: BanditLog, found: Findings, level: float, notes: list[str]) -> Diagnosis:
    """Give the verdict, with the figures."""
    late = slice(-max(1, round(0.3 * choices.n_rounds)), None)
    agreement = proportion(found.final.hits[late], level)
    chance = float((1 / choices.n_arms)[late].mean())
    verdict, sentence, since, changed = _verdict(log, found, level, agreement, chance)
    settling, diagnostics = found.settling, found.diagnostics
    if verdict == "settled" and settling is not None and settling.fall_p < 1 - level:
        notes.append(
            "the final policy fits some earlier rounds better than later ones "
            f"(p {p_words(settling.fall_p, LEAST_P)}): the picks "
            "have become noisier, or something changed within the last tenth, where a change cannot be detected yet"
        )
    if verdict == "drifting" and found.change.gradual:
        notes.append("the policies right before and after the round given are alike: the change was gradual")
    if verdict == "drifting" and found.before is not None:
        earlier = round_of(log, found, found.before.round, found.before.low, found.before.high)
        notes.append(
            f"it was not the only change: the rounds before it drift as well, at about round {earlier.round:,}"
        )
    return Diagnosis(
        verdict=verdict,
        from_start=since is not None and since.round == 0,
        sentence=sentence,
        settled=since,
        changed=changed,
        level=level,
        n_rounds=log.n_rounds,
        n_choices=choices.n_rounds,
        rank=found.preference.rank,
        bins=diagnostics.bins,
        matrix=tuple(tuple(row) for row in diagnostics.matrix.tolist()),
        predictability_rise=diagnostics.predictability_rise,
        late_gap=diagnostics.late_gap,
        stability=() if settling is None else blocks_of(settling, found.rounds, level),
        tests=tests_of(found),
        notes=tuple(notes),
    )


def _verdict(
    log: BanditLog, found: Findings, level: float, agreement: Estimate, chance: float
) -> tuple[Verdict, str, RoundEstimate | None, RoundEstimate | None]:
    preference, change, settling = found.preference, found.change, found.settling
    if preference.p_value >= 1 - level:
        return "no preference found", no_preference(preference.p_value, agreement, chance, level), None, None
    if change.found:
        place = round_of(log, found, change.round, change.low, change.high)
        before = float(found.final.hits[: change.round].mean())
        return "drifting", drifting(place, before, change.p_value, agreement, chance, level), None, place
    if settling is None:
        return "not enough evidence", unpredictable(preference.p_value, agreement, chance, level), None, None
    if settling.rise_p >= 1 - level or settling.block == 0:
        since = round_of(log, found, 0, 0, int(settling.bounds[settling.high]))
        return "settled", settled(since, agreement, chance, level), since, None
    # The learner settled somewhere in the block before the first level one.
    block, low, high = (int(settling.bounds[b]) for b in (settling.block, max(0, settling.low - 1), settling.high))
    since = round_of(log, found, block, low, high)
    if block > (LATE if settling.abrupt else LONGEST) * len(found.rounds):
        return "still exploring", exploring(since, found.diagnostics, agreement, chance, level), None, None
    return "settled", settled(since, agreement, chance, level), since, None


def _ordinal(number: int) -> str:
    """A power of two in its order, as in 32nd."""
    ending = "th" if number % 100 // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
