"""The weights over time, by expectation propagation: each pick is looked at again in the light of all others.

The filter approximates a round's choice model once, at what was believed before the round. Where most picks are nearly
certain, that leaves large weights too short and their bands too narrow. Here each round is approximated again at what
all other rounds say of its weights, until nothing moves any more. The law of motion and the size of its steps are those
under which the picks are then most probable; laws that are about as probable share in the bands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import ConvergenceWarning, warn
from onlooker.base.threads import ordered_map
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.observers.dynamic.changes import LEVEL, Jumps
from onlooker.observers.dynamic.members import AVERAGES, DRIFTS, GROWS, SETTLES, bank, no_record, scaled
from onlooker.observers.dynamic.path import WeightPath, checkpoints_between
from onlooker.observers.dynamic.smoother import (
    ENOUGH,
    Rounds,
    Sites,
    Stretch,
    backwards,
    first_member,
    follow,
    tuned_law,
    without_own,
)

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Law

POWERS = range(-8, 9)
"""Steps may be 2 to the power of these times as large as the member's."""
COARSE = (-6, 0, 6)
"""Those that are tried at first."""
TURNS, SEARCHES = 15, 5
"""Most turns of approximating all rounds again, and of those that take a whole step and compare laws: later ones would
go back and forth."""
SETTLED, NEARLY_SETTLED = 0.01, 0.2
"""Share of their length by which the weights may still move: enough are turns until then, and more is not settled."""
UNSETTLED = (
    "the weights over time did not settle, as where all picks are certain: their lengths, and the widths of their "
    "bands, are those of a first look at the picks, and may be far off. Compare directions only"
)
BEHIND, COUNTS = 15.0, 4.0
"""Log-probability by which a law may be behind to be looked at again, and to count."""
RATES, GROWTH = (0.2, 0.35, 0.5), 8.0
"""Powers of time by which weights may grow, and log-probability that they have to be worth: weights that do grow gain
10 to 80 in logs of 3,000 rounds by that, and those that do not up to 5."""
WORK = 1 << 32
"""Rounds times the cube of the features and fifty, at most: five to ten seconds; a longer log keeps what the filter's
first pass gives. That is 12,500 rounds of 20 features, 5,000 of 45."""

Kind = tuple[int, "Law"]
"""A law, and the member of the bank that it moves on."""
Choice = tuple[int, int]
"""A law, by number, and the power of two that its steps are scaled by."""


def smooth_path(
    rounds: Rounds, wanted: Sequence[int] | None, centring: Matrix | None = None
) -> tuple[WeightPath, tuple[int, ...]]:
    """The weights at checkpoints, and the rounds at which they jumped; `centring` takes weights to what is shown."""
    first, d = rounds.first, len(rounds.after.units)
    checkpoints = checkpoints_between(first, first + rounds.n_rounds, wanted)
    shown, jumps = _Shown.at(rounds, checkpoints, centring), Jumps(rounds.n_rounds)
    for one in backwards(rounds, tuned_law(rounds), rounds.best):
        jumps.look(one.start, one.ahead, one.smoothed)
        shown.keep(one)
    found, has_covariances = jumps.found(), rounds.after.members[0].spread.ndim == 2
    n_choices = rounds.after.n_choices - rounds.before.n_choices
    if has_covariances and n_choices >= ENOUGH and rounds.n_rounds * (d + 50) ** 3 <= WORK:
        try:
            again = _propagated(rounds, found, checkpoints, centring)
        except np.linalg.LinAlgError:
            again = None
        if again is None:
            warn(ConvergenceWarning(UNSETTLED))
        else:
            shown, found = again
    path = WeightPath(
        rounds=np.array(checkpoints, dtype=np.int64),
        theta=shown.theta,
        standard_error=np.sqrt(np.maximum(shown.variances, 0.0)),
    )
    return path, tuple(first + one for one in found)


@dataclass(eq=False)
class _Shown:
    """Weights and their variances at checkpoints, as they are shown."""

    places: list[int]
    """Of the checkpoints' rounds, counted from the first that is smoothed."""
    units: Vector
    centring: Matrix | None
    theta: Matrix
    variances: Matrix

    @classmethod
    def at(cls, rounds: Rounds, checkpoints: Sequence[int], centring: Matrix | None) -> _Shown:
        """Nothing known yet."""
        units, places = rounds.after.units, [one - 1 - rounds.first for one in checkpoints]
        return cls(places, units, centring, *np.empty((2, len(places), len(units))))

    def keep(self, one: Stretch) -> None:
        """Take what a stretch has of them."""
        means, spreads = one.smoothed
        for place, t in enumerate(self.places):
            if 0 <= t - one.start < len(means):
                here = t - one.start
                spread = _spread(spreads[here], self.units)
                self.theta[place], self.variances[place] = _shown(means[here, :-1] / self.units, spread, self.centring)


def _spread(spread: NDArray[np.float64], units: Vector) -> NDArray[np.float64]:
    """Variances or covariances of the weights of the features as they are; NaN for what never differed."""
    known = np.where(np.isinf(units), np.nan, units)
    found: NDArray[np.float64] = (
        spread[:-1] / known**2 if spread.ndim == 1 else spread[:-1, :-1] / np.outer(known, known)
    )
    return found


def _shown(theta: Vector, spread: NDArray[np.float64], centring: Matrix | None) -> tuple[Vector, Vector]:
    """Weights and their variances, as differences to the mean over the arms where each arm has its own."""
    own = spread if spread.ndim == 1 else np.diag(spread)
    if centring is None:
        return theta, own
    spread = np.nan_to_num(spread)
    variances = centring**2 @ spread if spread.ndim == 1 else np.diag(centring @ spread @ centring)
    return centring @ theta, np.where(np.isnan(own), np.nan, variances)


def _propagated(
    rounds: Rounds, jumps: Sequence[int], checkpoints: Sequence[int], centring: Matrix | None
) -> tuple[_Shown, list[int]] | None:
    """The same by expectation propagation, averaged over laws; None where it does not settle."""
    found = _settled_with(rounds, jumps)
    if found is None:
        return None
    search, kept = found
    shares, parts = search.shares(), []
    for choice in shares:
        parts.append(_Shown.at(rounds, checkpoints, centring))
        for one in backwards(*search.law(choice), search.sites):
            parts[-1].keep(one)
    weights = np.array(list(shares.values()))[:, None, None]
    theta = np.stack([one.theta for one in parts])
    mean = (weights * theta).sum(axis=0)
    apart = np.square(theta - mean)
    variances = (weights * (np.stack([one.variances for one in parts]) + apart)).sum(axis=0)
    known = np.isfinite(rounds.after.units)
    if not (np.isfinite(mean).all() and (variances[:, known] > 0.0).all()):
        return None
    return _Shown(parts[0].places, parts[0].units, centring, mean, variances), kept


def _settled_with(rounds: Rounds, jumps: Sequence[int]) -> tuple[_Search, list[int]] | None:
    """What `_settled` finds, and the jumps that the weights make: those that make the picks more probable.

    A jump has to be worth the choice of its round among all.
    """
    without = _settled(rounds, [], None)
    kept, found = list(jumps), without
    while kept:
        found = _settled(rounds, kept, found)
        least = -math.inf if without is None else without.highest + len(kept) * math.log(rounds.n_rounds)
        if found is None or found.highest <= least:
            break
        real = _real(found, kept)
        if real == kept:
            return found, kept
        kept = real
    return None if without is None else (without, [])


def _real(search: _Search, jumps: Sequence[int]) -> list[int]:
    """Those of the jumps, each free to be any, over which the weights differ by more than chance.

    The filter takes what it is slow to learn, as the length of the weights where picks are nearly certain, for a jump.
    """
    from scipy.special import chdtrc

    if not jumps:
        return []
    places = {t for jump in jumps for t in (jump - 1, jump)}
    beliefs: dict[int, tuple[Vector, Matrix]] = {}
    for one in backwards(*search.law(search.top()), search.sites):
        means, spreads = one.smoothed
        for t in places & set(range(one.start, one.start + len(means))):
            beliefs[t] = means[t - one.start, :-1].copy(), spreads[t - one.start, :-1, :-1].copy()
    varies = np.isfinite(search.rounds.after.units)
    real = []
    for jump in jumps:
        (before, spread_before), (after, spread_after) = beliefs[jump - 1], beliefs[jump]
        spread, shift = (spread_before + spread_after)[np.ix_(varies, varies)], (after - before)[varies]
        if chdtrc(len(shift), shift @ np.linalg.solve(spread, shift)) < LEVEL:
            real.append(jump)
    return real


def _settled(rounds: Rounds, jumps: list[int], before: _Search | None) -> _Search | None:
    """How probable laws are, and where the choice model of each round is approximated under the most probable one.

    Laws with growth find other places than those without, each its own the better: they are compared at the end, and
    growth has to be clear. With jumps the search begins where one without them ended.
    """
    try:
        first = _sites(rounds, tuned_law(rounds), rounds.best, None) if before is None else before.sites
        families = _laws(rounds)[: 1 if jumps else None]
        found = [_settled_among(_Search(rounds, first, laws, jumps).begun()) for laws in families]
    except np.linalg.LinAlgError:
        # A spread without each round's own pick need not be one where picks contradict the law.
        return None
    settled = [(one.highest - GROWTH * place, one) for place, one in enumerate(found) if one is not None]
    return max(settled, key=lambda one: one[0])[1] if settled else None


def _settled_among(search: _Search) -> _Search | None:
    """The search where all rounds are approximated as its best law has it; None if it does not settle."""
    choice = search.top()
    for turn in range(TURNS):
        later, moved = _moved(search, choice, 1.0 if turn < SEARCHES else 0.5)
        if turn < SEARCHES:
            search = search.again(later)
            is_same, choice = search.top() == choice, search.top()
            if is_same and moved < SETTLED:
                return search
        elif moved < SETTLED or turn == TURNS - 1:
            return search.again(later) if moved < NEARLY_SETTLED else None
        else:
            search.sites = later
    return None


def _moved(search: _Search, choice: Choice, share: float) -> tuple[Sites, float]:
    """Where rounds are approximated after a share of the step under a law; how far the step goes, in their length."""
    before, later = search.sites, _sites(*search.law(choice), search.sites)
    change = later.means - before.means
    moved = float(np.linalg.norm(change[:, :-1])) / max(float(np.linalg.norm(later.means[:, :-1])), 1e-300)
    # The share of random picks takes half of its step at most: it would go back and forth where there are none.
    means = before.means + np.append(np.full(change.shape[1] - 1, share), 0.5) * change
    return Sites(means, before.flats + share * (later.flats - before.flats), before.offsets), moved


def _sites(rounds: Rounds, law: Law, which: int, before: Sites | None) -> Sites:
    """Where to approximate the choice model of each round, given where the others are approximated."""
    from onlooker.kernels.dynamic import fill_flats

    offsets = _offsets(rounds) if before is None else before.offsets
    means, flats = np.empty((rounds.n_rounds, len(rounds.after.units) + 1)), np.empty(offsets[-1] - offsets[0])
    for one in backwards(rounds, law, which, before):
        middles, spreads = without_own(one)
        stop = one.start + len(middles)
        means[one.start : stop] = middles
        fill_flats(one.block.rows, one.block.offsets, middles, spreads, flats[offsets[one.start] : offsets[stop]])
    return Sites(means, flats, offsets)


def _offsets(rounds: Rounds) -> Index:
    """Where the rows of each round begin."""
    if isinstance(rounds.log, BanditLog):
        return rounds.log.offsets
    sizes = [np.diff(rounds.take(*one).offsets) for one in rounds.stretches()]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])


@dataclass(eq=False)
class _Search:
    """The laws under which the picks are most probable."""

    rounds: Rounds
    sites: Sites
    laws: Sequence[Kind]
    jumps: list[int]
    """Rounds before which the weights may go anywhere."""
    evidence: dict[Choice, float] = field(default_factory=dict)

    def begun(self) -> _Search:
        """All laws tried."""
        self._look([(number, power) for number in range(len(self.laws)) for power in COARSE])
        self._refine(3)
        return self

    def again(self, sites: Sites) -> _Search:
        """The same with rounds approximated elsewhere; laws that are far behind are left out."""
        found = _Search(self.rounds, sites, self.laws, self.jumps)
        before = self._tops()
        found._look(before)
        found._refine(1)
        if found._tops() != before:
            found._refine(2)
        return found

    def top(self) -> Choice:
        """The best law."""
        return max(self.evidence, key=lambda one: (self.evidence[one], one))

    @property
    def highest(self) -> float:
        """Its log-probability of the picks."""
        return self.evidence[self.top()]

    def law(self, choice: Choice) -> tuple[Rounds, Law, int]:
        """The rounds, where jumps take as long as weights need to turn round, the law and the member that it moves."""
        which, law = self.laws[choice[0]]
        law = scaled(law, 2.0 ** choice[1])
        gaps = self.rounds.gaps.copy()
        gaps[self.jumps] = 1.0 + 4.0 * self.sites.size / (law.every + law.pick)
        return replace(self.rounds, gaps=gaps), law, which

    def shares(self) -> dict[Choice, float]:
        """How probable each law is, of those that count."""
        top = self.highest
        found = {one: math.exp(value - top) for one, value in self.evidence.items() if value > top - COUNTS}
        total = sum(found.values())
        return {one: share / total for one, share in found.items()}

    def _refine(self, step: int) -> None:
        """Look at the neighbours of the best of each law."""
        near = [(number, power + side) for number, power in self._tops() for side in (-step, step)]
        self._look([one for one in near if one[1] in POWERS and one not in self.evidence])

    def _tops(self) -> list[Choice]:
        """The best of each law that is not far behind."""
        order = sorted(self.evidence, key=lambda one: (self.evidence[one], one))
        tops = {one[0]: one for one in order}
        return [tops[one] for one in sorted(tops) if self.evidence[tops[one]] > self.evidence[order[-1]] - BEHIND]

    def _look(self, choices: list[Choice]) -> None:
        self.evidence.update(zip(choices, ordered_map(self._probability, choices), strict=True))

    def _probability(self, choice: Choice) -> float:
        rounds, law, which = self.law(choice)
        member, none = first_member(rounds, which, self.sites), no_record(len(rounds.after.units))
        return sum(follow(rounds, one, law, member, none, self.sites)[1] for one in rounds.stretches())


def _laws(rounds: Rounds) -> list[list[Kind]]:
    """Laws of the path: ridge regression that drifts a little, what settles, what drifts, and what predicted best.

    That one is left out where it settles: its steps are such that it predicts well, and its bands would be too narrow.
    Where weights that grow predicted best, the others are growth at several rates, with and without a little drift.
    """
    laws = bank(len(rounds.after.units))
    ridge = laws[0]._replace(pick=2.0, averages=1.0, every=0.0003)
    found = [(AVERAGES, ridge), (DRIFTS, laws[DRIFTS]._replace(shrinks=1.0)), (DRIFTS, laws[DRIFTS])]
    if rounds.best == GROWS:
        growing = [
            (which, law._replace(grows=rate)) for which, law in ((GROWS, laws[GROWS]), found[0]) for rate in RATES
        ]
        return [found, growing]
    return [found if rounds.best in {*SETTLES, DRIFTS} else [*found, (rounds.best, laws[rounds.best])]]
