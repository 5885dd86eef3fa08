"""From the findings to the verdict, and to the sentences that say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from onlooker.base.checks import as_level, as_whole, counted
from onlooker.base.memory_limit import FITTING
from onlooker.base.text import SMALLEST_P, p_words
from onlooker.diagnosis.evenness import find_decided, find_uneven
from onlooker.diagnosis.findings import Findings, blocks_of, find_all, find_choices, round_of, tests_of, usable_bins
from onlooker.diagnosis.movement import Steadiness, part_of
from onlooker.diagnosis.picking import (
    MOST_ROUNDS,
    Exploration,
    enough_for_two,
    find_exploration,
    find_followed,
    find_forced,
    find_two_policies,
    find_withdrawn,
)
from onlooker.diagnosis.predictability import MATERIAL, Estimate, Settling, proportion
from onlooker.diagnosis.result import Diagnosis, RoundEstimate, State, Values
from onlooker.diagnosis.sets import diagnose_drawn
from onlooker.imitation.choice_model import LINEAR, Linear, as_score
from onlooker.imitation.scores.choice import expanded
from onlooker.imitation.stretches import LATE
from onlooker.logs.log import BanditLog, as_log, as_narrow, check_room
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import summarise_parts

ROUNDS_PER_DIRECTION, LEAST_ROUNDS = 20, 100
"""Fewer rounds with a choice than this for every direction of theta, or than this at all, and no verdict is given."""

LONGEST = 0.5
"""A learner that settled later than this part of the log is called moving, unless it did so at once.

Chosen by looking: LinTS with 20 features and 50 arms comes to it after some 1,000 rounds.
"""


def diagnose(log: BanditLog | Parts, bins: int = 10, *, level: float = 0.95, score: Any = LINEAR) -> Diagnosis:
    """Say what the learner behind a log values, over time, and how it picks, from offers and picks alone.

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
    score
        How features become an arm's score, as `SuffixImitation` has it. What is judged are the columns of its basis, or
        the features and the score of trees and networks, fitted to the second half.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import EpsilonGreedy, LinUCB, UniformRandom
    >>> from onlooker.simulation.play import simulate
    >>> diagnose(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log).verdict
    'stable'
    >>> diagnose(simulate(Environment(5, 10), UniformRandom(), n_rounds=2000).log).verdict
    'no preference'

    A learner with random picks in every fifth round is stable, and explores:

    >>> found = diagnose(simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=2000).log)
    >>> found.values.state, round(found.exploration.share, 1), found.exploration.trend
    ('stable', 0.2, 'steady')
    """
    n_bins = as_whole(bins, "bins", least=2)
    as_level(level)
    if isinstance(log, BanditLog):
        as_narrow(log, "a diagnosis")
    if isinstance(as_score(score), Linear):
        found = _of_any(log, n_bins, level)
        return replace(found, notes=(*found.notes, ONLY_LINEAR)) if found.verdict == "no preference" else found
    return _of_any(expanded(as_log(log, "a diagnosis with this score"), score), n_bins, level)


ONLY_LINEAR = (
    "only scores that are linear in the features were tried, so picks that follow a product or a curve of them may "
    'look like this too: score="auto" (--score auto) tries such scores'
)
"""What is said beside no preference, unless another score was asked for."""


def _of_any(log: BanditLog | Parts, n_bins: int, level: float) -> Diagnosis:
    """Diagnose a log in memory or not, whose picks are known or not."""
    check_room(log, FITTING)
    if isinstance(log, BanditLog) and log.possible is not None:
        return diagnose_drawn(log, lambda drawn: _diagnosed(drawn, n_bins, level))
    if not isinstance(log, Parts):
        return _diagnosed(as_log(log), n_bins, level)
    seen = summarise_parts(log)
    if seen.sample.possible is None:
        diagnosis = _diagnosed(as_narrow(seen.sample, "a diagnosis"), n_bins, level, stride=seen.stride)
    else:
        diagnosis = diagnose_drawn(seen.sample, lambda drawn: _diagnosed(drawn, n_bins, level, stride=seen.stride))
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
        values=Values(state="not enough evidence"),
        exploration=Exploration(),
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
    state, sentence, since, changed = _state(log, choices, found, level, agreement, chance)
    notes += [*_notes(log, found, state, level), *_beside(choices, found, state)]
    settling, diagnostics = found.settling, found.diagnostics
    exploration = _exploration(choices, found, state, level)
    place = since or changed
    return Diagnosis(
        verdict=state,
        values=Values(
            state=state,
            since=None if place is None else place.round,
            changed_at=None if changed is None else changed.round,
        ),
        exploration=exploration,
        from_start=since is not None and since.round == 0,
        sentence=" ".join(filter(None, (sentence, _exploring(exploration, level)))),
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
        stability=() if settling is None or state in UNKNOWN else blocks_of(settling, found.rounds, level),
        tests=tests_of(found),
        notes=tuple(notes),
    )


def _exploration(choices: BanditLog, found: Findings, state: State, level: float) -> Exploration:
    """How it picks since it is stable; where it never was, in the last half."""
    if state in UNKNOWN or found.settling is None:
        return Exploration()
    if state != "stable" or not found.steady(level):
        last = found.changes[-1].round if found.changes else 0
        first = min(found.start, max(last, choices.n_rounds - FOLLOWED))
        ways = part_of(found.others, choices, first)
        return find_followed(choices[first:], ways, found.recent, level, since=found.start - first)
    block = _first_block(found.settling, level, steady=True)
    since = int(found.settling.bounds[block])
    return find_exploration(choices, found.others, found.whole.pull, level, since=since)


FOLLOWED = 8000
"""Rounds that a learner which moves is followed for, unless its last half is longer."""

UNKNOWN: tuple[State, ...] = ("no preference", "not enough evidence")
"""States in which nothing is said of how it picks: there is no best guess."""


def _notes(log: BanditLog, found: Findings, state: State, level: float) -> Iterator[str]:
    """What to know beside the state."""
    whole, changes = found.whole, found.changes
    if state == "changed" and len(changes) > 1:
        before = ", ".join(f"{round_of(log, found, one.round, one.low, one.high).round:,}" for one in changes[:-1])
        yield f"it was not the only change: there was one before, at about round {before}"
    small = max(whole.steadiness.p_value, whole.given_up.p_value) < 1 - level and whole.given_up.share >= SLIGHT
    if state == "stable" and small:
        place = round_of(log, found, whole.given_up.round, whole.given_up.round, whole.given_up.round)
        yield (
            f"a slight change at about round {place.round:,} costs the policy before it {whole.given_up.share:.1%} of "
            f"what a policy predicts: less than the {MATERIAL:.0%} that counts as a change"
        )
    if state not in UNKNOWN and found.repeats >= HABIT:
        yield (
            f"about {found.repeats:.0%} of the picks repeat the position of the pick before, more than the features "
            "explain: a rule or habit beside the policy, or a feature that the log lacks. Check how positions are "
            "assigned"
        )
    if state == "changed" and found.late is None:
        yield "too few rounds follow the change to say whether the new policy is stable"


def _beside(choices: BanditLog, found: Findings, state: State) -> Iterator[str]:
    """What a system seems to do beside its learner, by rounds that one policy explains as well as any does."""
    if state in UNKNOWN:
        return
    stable = state == "stable" and found.settling is not None
    start, pull = (0, found.whole.pull) if stable else (found.start, found.recent)
    part, rank = choices[start:], found.preference.rank
    if enough_for_two(part.n_rounds, rank):
        recent = max(start, choices.n_rounds - MOST_ROUNDS)
        two = find_two_policies(choices[recent:], part_of(found.others, choices, recent))
        if two.proved:
            yield (
                f"the picks look like two policies at once: about {two.share:.0%} of the rounds follow another one, as "
                "with A/B buckets or a fallback. The weights mix both; if a column says which rounds are whose, "
                "diagnose them apart (--by COLUMN)"
            )
    yield from find_forced(part, pull.fit.theta, float(pull.mixture.shares[:, 1].mean()))
    whole = found.whole.pull
    yield from find_withdrawn(choices, whole.fit.theta, float(whole.mixture.shares[:, 1].mean()), found.rounds)
    if stable and found.settling is not None and found.settling.under_way:
        yield (
            f"the first {int(found.rounds[found.settling.first - 1]) + 1:,} rounds are already about as predictable as "
            "the last: the learner learned within them, does not learn, or began before the log. In the last case use "
            "--burn-in auto: the burn-in rule N^0.9 and tracking suppose that it began with round 0"
        )


HABIT = 0.05
"""Picks that repeat a position are mentioned from this share on."""

SLIGHT = 0.01
"""Changes that cost less than this part of what a policy predicts are not mentioned."""


def _state(
    log: BanditLog, choices: BanditLog, found: Findings, level: float, agreement: Estimate, chance: float
) -> tuple[State, str, RoundEstimate | None, RoundEstimate | None]:
    """The state, the sentence that says it, since when it is stable, and when it changed."""
    preference, settling, percent = found.preference, found.settling, f"{100 * level:g}%"
    gain = float((found.final.given - 1 / choices.n_arms).mean())
    # Positions explain no more than all picks: where a policy explains half of that, they are not asked.
    in_question = preference.p_value >= 1 - level or 2 * gain < float((1 - 1 / choices.n_arms).mean())
    uneven = find_uneven(choices) if in_question else ""
    beyond = find_decided(choices, found.edges, gain) if uneven else None
    late = (
        f"In the last 30% of the rounds, a policy predicts {agreement.value:.1%} of held-out picks "
        f"({percent} interval {agreement.low:.1%} to {agreement.high:.1%}); random guessing gets {chance:.1%}."
    )
    for p_value in (preference.p_value, beyond):
        if p_value is not None and p_value >= 1 - level:
            return "no preference", f"{_indifferent(uneven, p_value)} {late}", None, None
    if found.late is not None and found.moving(level):
        said = (
            "What it values is moving: at the end of the log no fixed policy explains the picks, and one that follows "
            f"them would predict {found.late.share:.0%} more. {late}"
        )
        return "moving", said, None, None
    adrift = found.adrift(level)
    if adrift is not None:
        return "moving", f"{_adrift(log, found, *adrift)} {late}", None, None
    if found.changes:
        last = found.changes[-1]
        place = round_of(log, found, last.round, last.low, last.high)
        before = float(found.final.hits[: last.round].mean())
        said = (
            f"What it values changed at about round {_place(place, percent)}, p {p_in_words(last.steadiness.p_value)}. "
            f"{late} Before the change, the same policy predicts {before:.1%} of the picks."
        )
        return "changed", said, None, place
    if settling is None:
        said = (
            f"Not enough evidence: the picks are not quite uniform (p {p_in_words(preference.p_value)}), but no policy "
            f"fitted to late rounds predicts others clearly better than random guessing. {late}"
        )
        return "not enough evidence", said, None, None
    since, too_late = _since(log, found, settling, level)
    if too_late:
        rise = found.diagnostics.predictability_rise
        said = (
            "What it values is moving: the policy of the last rounds fits only since about round "
            f"{_place(since, percent)}, late in the log. From its first to its last 30% the picks became "
            f"{100 * rise.value:.0f} points easier to predict ({percent} interval {100 * rise.low:.0f} to "
            f"{100 * rise.high:.0f}). {late}"
        )
        return "moving", said, None, None
    return "stable", f"{_stable(since, percent, rising=settling.rise_p < 1 - level)}. {late}", since, None


def _adrift(log: BanditLog, found: Findings, start: int, stop: int, movement: Steadiness) -> str:
    """Of weights that differ between early and late, but moved between changes too."""
    first, end = round_of(log, found, start, start, start).round, round_of(log, found, stop - 1, stop, stop).round
    return (
        f"What it values is moving: no single change explains the picks, as no fixed policy explains those of rounds "
        f"{first:,} to {end:,} (p {p_in_words(movement.p_value)}), and one that follows them would predict "
        f"{movement.share:.0%} more."
    )


def _indifferent(uneven: str, p_value: float) -> str:
    """Of picks that no weights explain; `uneven` says what shows that they are not random all the same."""
    p_said = p_in_words(p_value)
    if not uneven:
        return f"No preference found: no weights for the features explain the picks better than chance (p {p_said})."
    return (
        f"No preference found: no weights for the features explain the picks (p {p_said}). They are not uniformly "
        f"random, though: {uneven}. Something else decides, such as a rule, what the log lacks, or a score that is not "
        "linear."
    )


def _stable(since: RoundEstimate, percent: str, *, rising: bool) -> str:
    """Of a learner that one policy explains; `rising` if that policy fits early picks less well than late ones."""
    if since.round:
        place = _place(since, percent)
        return f"What it values is stable since about round {place}: from this round on, one policy explains the picks"
    if rising:
        return (
            "What it values is stable: the picks are consistent with one policy from the start. It fits the early "
            "picks less well, as the learner explored more then or was still learning"
        )
    return "What it values is stable from the start: one policy explains the picks of the whole log"


def _place(place: RoundEstimate, percent: str) -> str:
    named = "" if place.round_id is None else f", id {place.round_id}"
    return f"{place.round:,}{named} ({percent} interval {place.low:,} to {place.high:,})"


def p_in_words(p_value: float) -> str:
    """A p-value within a sentence.

    Examples
    --------
    >>> p_in_words(0.042), p_in_words(1e-9), p_in_words(0.0)
    ('= 0.04', '= 1.0e-09', '< 1e-100')
    """
    if p_value < SMALLEST_P:
        return p_words(p_value)
    return f"= {p_value:.2f}" if p_value >= 0.01 else f"= {p_value:.1e}"


def _exploring(found: Exploration, level: float) -> str:
    """How it picks; empty where there is no best guess.

    Examples
    --------
    >>> _exploring(Exploration(share=0.2, low=0.18, high=0.22, trend="steady"), 0.95)
    'How it picks: 20.0% of recent picks are not its best guess (95% interval 18.0% to 22.0%), with no clear trend.'
    """
    if found.share is None or found.low is None or found.high is None:
        return ""
    trend = {"steady": "with no clear trend", "rising": "a rising share", "falling": "a falling share", None: "now"}
    return (
        f"How it picks: {found.share:.1%} of recent picks are not its best guess ({100 * level:g}% interval "
        f"{found.low:.1%} to {found.high:.1%}), {trend[found.trend]}."
    )


def _since(log: BanditLog, found: Findings, settling: Settling, level: float) -> tuple[RoundEstimate, bool]:
    """Since when one policy explains the picks, and whether that is too late to speak of it.

    Where one policy may have made all picks, what rises is not what it values but how often it picks by it; then the
    round is that from which on it does so at least half as often as at the end.
    """
    bounds, n_rounds = settling.bounds, len(found.rounds)
    steady = found.steady(level)
    block = _first_block(settling, level, steady=steady)
    if block == 0:
        return round_of(log, found, 0, 0, int(bounds[settling.high])), False
    # The learner settled somewhere in the block before the first level one.
    places = (block, max(0, min(settling.low, block) - 1), max(settling.high, block))
    since = round_of(log, found, *(int(bounds[place]) for place in places))
    at_once = settling.abrupt or steady
    return since, int(bounds[block]) > (LATE if at_once else LONGEST) * n_rounds


def _first_block(settling: Settling, level: float, *, steady: bool) -> int:
    """First block from which on the final policy is at work; 0 where it does not rise beyond chance."""
    if settling.rise_p >= 1 - level:
        return 0
    return int((settling.fitted >= PRESENT).argmax()) if steady else settling.block


PRESENT = 0.5
"""A policy is at work where it attains half of what it does at the end."""


def _ordinal(number: int) -> str:
    """A power of two in its order, as in 32nd."""
    ending = "th" if number % 100 // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
