"""Follow one learner through its log under one assumption about how it explores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.documents import within
from onlooker.base.types import Features, Index, Matrix, Progress, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking.assumptions import Assumption, Lapse, Reference, in_order
from onlooker.observers.tracking.path import Checkpoint, as_checkpoints, next_checkpoint
from onlooker.observers.tracking.variation import Sizes, feature_sizes, in_units

if TYPE_CHECKING:
    from onlooker.kernels.margins import Belief

SLIPS = 1000.0
"""Prior weight, in rounds, of there being no slips where exploration is of another kind."""
LEAST = 5e-4
"""Share of slips that is always allowed for: without any, one odd pick would break the filter."""
SPARK = 1e-6
"""Uncertainty of the first estimate as a share of the prior's: it is zero, but ties need a scale."""


@dataclass(eq=False)
class Follower:
    """The belief about a learner's estimate, moved on by every round that it is shown.

    Examples
    --------
    >>> from onlooker import UCB, Environment, LinUCB, simulate
    >>> log = simulate(Environment(5, 20), LinUCB(alpha=0.1), n_rounds=1000).log
    >>> follower = Follower.start(Assumption(exploration=UCB(1.0), ridge=1.0, precision=0.1, slip=0.001), n_features=5)
    >>> _ = follower.follow(log)
    >>> follower.n_rounds, follower.evidence > follower.chance
    (1000, True)
    """

    assumption: Assumption
    belief: Belief
    tally: Matrix
    """How well the likeliest arm was predicted, as in `onlooker.kernels.tracking.follow`, one table per epoch."""
    checkpoints: tuple[int, ...] | None = None
    """Rounds after which to keep the estimate; None is the default schedule."""
    units: Vector | None = None
    """What the features are counted in, each in its own; None takes them as they are. The belief is in these."""
    sizes: Sizes | None = None
    """What a feature that first varies later is given its unit by; None leaves units as they are."""
    coding: Reference | None = None
    """Gives the reference arm a block of its own; belief, units and sizes are those of the features with it."""
    path: list[Checkpoint] = field(default_factory=list)
    n_rounds: int = 0
    n_choices: int = 0
    """Rounds that offered more than one arm."""
    evidence: float = 0.0
    """Log-probability of all picks."""
    chance: float = 0.0
    """The same, if every pick were uniform."""
    random_picks: float = 0.0
    """How many of the choices were picks at random, in expectation."""
    pending: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    """Features of picks that a learner with batches has not learned from yet, in units."""
    middle: Vector = field(default_factory=lambda: np.empty(0))
    """Mean of the estimates so far of a learner that forgets."""

    @classmethod
    def start(
        cls,
        assumption: Assumption,
        n_features: int,
        checkpoints: tuple[int, ...] | None = None,
        units: Vector | None = None,
        sizes: Sizes | None = None,
        coding: Reference | None = None,
    ) -> Follower:
        """Know nothing yet of a learner; `n_features` are those of its log."""
        from onlooker.kernels.margins import Belief
        from onlooker.kernels.tracking import BINS, EPOCHS

        n_features += 0 if coding is None else coding.width
        if assumption.rate:
            # The estimate, and the truth that it goes after.
            n_features *= 2
        unit = np.eye(n_features)
        ridge, known = assumption.ridge + assumption.known, assumption.precision + assumption.known
        # What a learner knew already, its estimate may show: the prior's variance less what it does not know.
        spread = assumption.known / known / assumption.precision + SPARK / assumption.precision
        belief = Belief(
            mean=np.zeros(n_features),
            spread=spread * unit,
            inverse=unit / ridge,
            prior_inverse=unit / known,
            largest=np.array([1 / ridge, spread]),
        )
        if assumption.rate:
            np.fill_diagonal(belief.spread[n_features // 2 :, n_features // 2 :], 1.0 / assumption.precision)
            belief.largest[1] = max(spread, 1.0 / assumption.precision)
        tally, middle = np.zeros((EPOCHS, 4, BINS)), np.zeros(n_features)
        # A feature that comes late is given its unit by each follower of its own.
        units, sizes = deepcopy(units), deepcopy(sizes)
        return cls(assumption, belief, tally, checkpoints, units, sizes, coding, middle=middle)

    def follow(self, log: BanditLog, progress: Progress | None = None, arms: Vector | None = None) -> Vector:
        """Take in the next rounds; parts of a log, one after the other, give the same as the whole.

        Give the log-probability of each pick, given those before it; `arms` receives the probability of every arm.
        """
        from onlooker.kernels.tracking import BLOCK, follow
        from onlooker.kernels.turns import follow_turns

        model, choices = self.assumption.model(), log.n_arms > 1
        turns = self.assumption.other
        other = None if turns is None else replace(self.assumption, exploration=turns).model()
        probabilities, random, none = np.empty(log.n_rounds), np.empty(log.n_rounds), np.empty(0)
        for first, last in ragged.blocks(log.offsets, log.n_features):
            part, done = log[first:last], 0
            part = part if self.coding is None else self.coding.log(part)
            late = [] if self.sizes is None else list(self.sizes.late(part))
            rows, offsets = part.dense, part.offsets
            features = self._as_followed(rows)
            while done < part.n_rounds:
                while late and late[0][0] == done:
                    self._give_unit(late.pop(0)[1], part[done : done + 1])
                    features = self._as_followed(rows)
                ahead = next_checkpoint(self.n_rounds, self.checkpoints) - self.n_rounds
                if self.assumption.batch > 1:
                    ahead = min(ahead, self.assumption.batch - self.n_rounds % self.assumption.batch)
                if self.assumption.memory < 1.0:
                    ahead = min(ahead, BLOCK - self.n_rounds % BLOCK)
                    if self.n_rounds and self.n_rounds % BLOCK == 0:
                        self._forget(BLOCK)
                stop = min(done + ahead, part.n_rounds, late[0][0] if late else part.n_rounds)
                these = features, offsets[done : stop + 1], part.chosen[done:stop]
                state = self.n_rounds, self.n_choices, self.belief
                made = probabilities[first + done : first + stop], random[first + done : first + stop], self.tally
                if other is None:
                    follow(
                        *these,
                        model,
                        *state,
                        *made,
                        none if arms is None else arms[log.offsets[first] : log.offsets[last]],
                    )
                else:
                    follow_turns(*these, model, other, *state, *made)
                self.n_rounds += stop - done
                self.n_choices += int(np.count_nonzero(choices[first + done : first + stop]))
                if self.assumption.batch > 1:
                    self._wait(features[part.chosen_rows[done:stop]])
                done = stop
                if next_checkpoint(self.n_rounds - 1, self.checkpoints) == self.n_rounds:
                    self.path.append(self.here())
                if progress is not None:
                    progress(first + done, log.n_rounds)
        sizes, which = np.unique(log.n_arms, return_inverse=True)
        chances = np.array([-math.log(size) for size in sizes.tolist()])[which]
        self.evidence = _added(self.evidence, probabilities)
        self.chance = _added(self.chance, chances)
        self.random_picks = _added(self.random_picks, np.where(choices, random, 0.0))
        return probabilities

    def _as_followed(self, rows: Features) -> Matrix:
        """Rows in units; beside them, for a learner by gradient, none for the truth: no score depends on that."""
        found = _as_double(rows if self.units is None else in_units(rows, self.units))
        return _as_double(np.concatenate([found, np.zeros(found.shape)], axis=1)) if self.assumption.rate else found

    def _wait(self, picks: Features) -> None:
        """Keep what was picked until the learner updates, and let it update if that is now."""
        from onlooker.kernels.tracking import move

        self.pending = np.concatenate([self.pending.reshape(-1, picks.shape[1]), picks.astype(np.float64)])
        if self.n_rounds % self.assumption.batch == 0:
            move(self.pending, self.belief)
            self.pending = self.pending[:0]

    def _forget(self, n_rounds: int) -> None:
        """Discount V for so many rounds, all but the ridge.

        The estimate of a learner that forgets strays around the truth, which its mean over the rounds so far is close
        to, late ones counting more: as much of its distance is lost as V loses.
        """
        kept, belief, unit = self.assumption.memory**n_rounds, self.belief, np.eye(len(self.belief.mean))
        for matrix, ridge in (
            (belief.inverse, self.assumption.ridge),
            (belief.prior_inverse, self.assumption.precision),
        ):
            matrix[:] = np.linalg.inv(kept * np.linalg.inv(matrix) + (1.0 - kept) * ridge * unit)
        self.middle += min(1.0, 2.0 * n_rounds / self.n_rounds) * (belief.mean - self.middle)
        belief.mean[:] += (1.0 - kept) * (self.middle - belief.mean)
        belief.spread[:] *= kept**2

    def estimate_random_picks(self) -> None:
        """Take the share of random picks to be that of the rounds so far."""
        n, k = self.n_choices, self.random_picks
        if isinstance(self.assumption.exploration, Lapse):
            # Of two that take turns, only this one picks at random, in half of the rounds.
            share = min(max(LEAST, ((k if self.assumption.other is None else 2.0 * k) + 1.0) / (n + 2.0)), 1.0)
            self.assumption = replace(self.assumption, exploration=Lapse(share))
        else:
            self.assumption = replace(self.assumption, slip=max(LEAST, k / (n + SLIPS)))

    def grow(self, count: int) -> None:
        """Have so many features more, after the others, which were 0 so far: nothing is known of them."""
        old, copies = self.belief, 2 if self.assumption.rate else 1
        d = len(old.mean) // copies
        new = Follower.start(self.assumption, d + count).belief
        if self.coding is not None:
            self.coding = self.coding.grown(d - self.coding.width, count)
        kept = ((d + count) * np.arange(copies)[:, None] + np.arange(d)).ravel()
        for name in ("mean", "spread", "inverse", "prior_inverse"):
            getattr(new, name)[np.ix_(*(kept,) * getattr(new, name).ndim)] = getattr(old, name)
        new.largest[:] = np.maximum(new.largest, old.largest)
        deviation = math.sqrt(SPARK * self.assumption.precision) / self.assumption.ridge
        self.belief, self.path = new, [one.grown(count, deviation) for one in self.path]
        if len(self.pending):
            self.pending = np.pad(self.pending, ((0, 0), (0, count)))
        else:
            self.pending = np.empty((0, 0))
        self.middle = np.append(self.middle, np.zeros(len(new.mean) - len(old.mean)))
        if self.units is not None:
            self.units = np.append(self.units, np.ones(count))
        if self.sizes is not None:
            self.sizes.known = np.append(self.sizes.known, np.zeros(count, dtype=bool))

    def here(self) -> Checkpoint:
        """The learner's own estimate after the rounds so far."""
        turn = self._turn()
        mean, spread = self._coded_back(turn @ self.belief.mean, turn @ self.belief.spread @ turn.T)
        return Checkpoint.of(self.n_rounds, mean, spread, self.own_units)

    @property
    def own_units(self) -> Vector | None:
        """What the log's own features are counted in."""
        return self.units if self.units is None or self.coding is None else self.units[self.coding.width :]

    def _coded_back(self, mean: Vector, spread: Matrix) -> tuple[Vector, Matrix]:
        """Mean and covariance of weights, for the log's own features, both in units."""
        if self.coding is None:
            return mean, spread
        back = self.coding.back(len(mean) - self.coding.width)
        if self.units is not None and self.own_units is not None:
            back = back * self.own_units[:, None] / self.units
        return back @ mean, back @ spread @ back.T

    @property
    def theta(self) -> Vector:
        """Mean of theta*, of the features as they are."""
        found, _ = self._coded_back(self.belief.mean, self.belief.spread)
        return found if self.own_units is None else found / self.own_units

    @property
    def second_moment(self) -> float:
        """Mean square of theta*'s coordinates, as far as is known."""
        mean, spread = self.belief.mean, self.belief.spread
        if self.assumption.rate:
            d = len(mean) // 2
            return float(mean[d:] @ mean[d:] + np.trace(spread[d:, d:])) / d
        return float(mean @ mean + np.trace(spread) + np.trace(self.belief.prior_inverse)) / len(mean)

    @property
    def covariance(self) -> Matrix:
        """Of theta* around its mean: what the picks leave open, and what the learner itself does not know."""
        _, found = self._coded_back(self.belief.mean, self.belief.spread + self.belief.prior_inverse)
        return found if self.own_units is None else found / np.outer(self.own_units, self.own_units)

    @property
    def foreseen(self) -> float:
        """Share of picks that were the likeliest arm, given the picks before."""
        return float(self.tally[:, 1].sum() / max(self.tally[:, 3].sum(), 1.0))

    def next_probabilities(self, log: BanditLog, places: Index) -> Vector:
        """Of every arm, were the rounds each the next one; `places` says where the features have their weights."""
        from onlooker.kernels.tracking import pick_probabilities

        rows = in_order(log.dense, places, len(self.belief.mean) - (0 if self.coding is None else self.coding.width))
        rows = rows if self.coding is None else self.coding.rows(rows, log.offsets)
        found = np.empty(len(rows))
        features = _as_double(rows if self.units is None else in_units(rows, self.units))
        pick_probabilities(features, log.offsets, self.assumption.model(), self.belief, found)
        return found

    @property
    def misfit(self) -> tuple[float, float]:
        """Mean distance between predicted and observed share of picks of the likeliest arm, and its standard error.

        Over bins of the predicted share in every epoch of the log; what chance alone makes is taken off.
        """
        predicted, picked, variance, rounds = np.moveaxis(self.tally, 1, 0)
        distance, chance = np.abs(predicted - picked).sum(), np.sqrt(2 / math.pi * variance).sum()
        total = max(float(rounds.sum()), 1.0)
        error = math.sqrt((1 - 2 / math.pi) * float(variance.sum())) / total
        return max(0.0, float(distance - chance) / total), error

    def _turn(self) -> Matrix:
        """From the mean of theta* to the learner's estimate."""
        model = self.assumption.model()
        return np.eye(len(self.belief.mean)) - model.shrink * self.belief.inverse

    def _give_unit(self, place: int, first: BanditLog) -> None:
        """Choose the unit of a feature by the first round that it varies in, as if it had been counted in it before.

        Exact if it was 0 until now, or needs no other unit. If it was the same for all arms but not 0, the learner's V
        is that of the new unit, and its weight is taken to be unknown: picks could not depend on it.
        """
        from onlooker.kernels.tracking import refresh

        assert self.sizes is not None
        self.sizes.known[place] = True
        size = float(feature_sizes(first)[place])
        old = 1.0 if self.units is None else float(self.units[place])
        new = self.sizes.unit(size / old) * old if size else old
        if new == old:
            return
        if self.units is None:
            self.units = np.ones(len(self.belief.mean))
        self.units[place] = new
        if len(self.pending):
            self.pending[:, place] *= old / new
        self.middle[place] *= new / old
        untouched = np.eye(len(self.belief.mean))[place] / (self.assumption.ridge + self.assumption.known)
        if (self.belief.inverse[place] != untouched).any():
            _rescale(self.belief, self.assumption, place, new / old)
            refresh(self.belief)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {
            "assumption": self.assumption.to_dict(),
            "belief": {name: getattr(self.belief, name).tolist() for name in self.belief._fields},
            "tally": self.tally.tolist(),
            "checkpoints": None if self.checkpoints is None else list(self.checkpoints),
            "units": None if self.units is None else self.units.tolist(),
            "sizes": None if self.sizes is None else self.sizes.to_dict(),
            "path": [one.to_dict() for one in self.path],
            **{name: getattr(self, name) for name in _COUNTS},
            _RANDOM_PICKS: self.random_picks,
            **({"pending": self.pending.tolist()} if len(self.pending) else {}),
            **({"middle": self.middle.tolist()} if self.assumption.memory < 1.0 else {}),
            **({} if self.coding is None else {"coding": self.coding.to_list()}),
        }

    def check(self) -> None:
        """Refuse what contradicts itself: values that no log has made."""
        rounds = [one.n_rounds for one in self.path]
        predicted, picked, variance, checked = np.moveaxis(self.tally, 1, 0)
        slack = 1e-9 * max(self.n_rounds, 1)
        if self.n_choices > self.n_rounds:
            raise ValueError(f"{self.n_choices} of {self.n_rounds} rounds offered a choice")
        if not _is_rising(rounds) or (rounds and rounds[-1] > self.n_rounds):
            raise ValueError("the path is not in order, or longer than what was followed")
        if (np.maximum(predicted, picked) > checked + slack).any() or (variance > checked + slack).any():
            raise ValueError("more was predicted or picked than there were rounds")
        if checked.sum() > self.n_choices or (checked % 1).any() or (picked % 1).any():
            raise ValueError("other rounds were checked than were followed")
        if not (-slack <= self.random_picks <= self.n_choices + slack and max(self.evidence, self.chance) <= slack):
            raise ValueError("a share or a probability is above 1")

    @classmethod
    def from_dict(cls, values: dict[str, Any], n_features: int) -> Follower:
        """Give back what `to_dict` was made of."""
        with within("coding"):
            coding = Reference.from_list(values["coding"], n_features) if "coding" in values else None
        own, n_features = n_features, n_features + (0 if coding is None else coding.width)
        assumption = Assumption.from_dict(values["assumption"])
        if len(values["belief"]["mean"]) != (2 * n_features if assumption.rate else n_features):
            raise ValueError(f"the mean was not kept for {n_features} features")
        fresh = cls.start(assumption, n_features, as_checkpoints(values["checkpoints"]))
        arrays = {}
        for name, array in fresh.belief._asdict().items():
            with within(f"belief.{name}"):
                arrays[name] = finite_like(array, values["belief"][name])
                if array.ndim == 2 and not _is_covariance(arrays[name]):
                    raise ValueError("a covariance has negative variances")
        if (arrays["largest"] <= 0).any() or not (np.array(values["tally"]) >= 0).all():
            raise ValueError("a bound or a count is negative")
        # States from before there were units have none.
        units = values.get("units")
        with within("units"):
            units = None if units is None else finite_like(arrays["mean"], units)
            if units is not None and (units <= 0).any():
                raise ValueError("a unit is not above 0")
        # States of 0.1 have no sizes: the monitor knows them well enough.
        kept = values.get("sizes")
        with within("sizes"):
            sizes = None if kept is None else Sizes.from_dict(kept, n_features)
        with within("path"):
            path = [Checkpoint.from_dict(one) for one in values["path"]]
            for one in path:
                finite_like(np.empty(own), one.theta)
                finite_like(np.empty(own), one.standard_error)
        pending = np.array(values.get("pending", np.empty((0, n_features))), dtype=np.float64)
        waiting = as_whole(values["n_rounds"], "n_rounds") % fresh.assumption.batch
        if pending.shape != (waiting, n_features) or not (np.abs(pending) < 1e150).all():
            raise ValueError("other picks are waiting than there were since the last update")
        return cls(
            assumption=fresh.assumption,
            pending=pending,
            middle=finite_like(arrays["mean"], values.get("middle", fresh.middle)),
            belief=type(fresh.belief)(**arrays),
            tally=finite_like(fresh.tally, values["tally"]),
            checkpoints=fresh.checkpoints,
            units=units,
            sizes=sizes,
            coding=coding,
            path=path,
            n_rounds=as_whole(values["n_rounds"], "n_rounds"),
            n_choices=as_whole(values["n_choices"], "n_choices"),
            evidence=as_number(values["evidence"], "evidence"),
            chance=as_number(values["chance"], "chance"),
            random_picks=as_number(values[_RANDOM_PICKS], _RANDOM_PICKS),
        )


def _rescale(belief: Belief, assumption: Assumption, place: int, factor: float) -> None:
    """Count a feature in a unit that is `factor` times as large."""
    belief.mean[place] *= factor
    for matrix in (belief.spread, belief.inverse, belief.prior_inverse):
        matrix[place] *= factor
        matrix[:, place] *= factor
    # The ridge, or the prior's precision, is the same in the new unit, and does not shrink with the rest of V.
    for matrix, ridge in ((belief.inverse, assumption.ridge), (belief.prior_inverse, assumption.precision)):
        more = (ridge + assumption.known) * (1.0 - factor**-2.0)
        column = matrix[:, place].copy()
        matrix[:] = matrix - np.outer(column, column) * (more / (1.0 + more * column[place]))
    # Its weight may be as large as any: the prior was too narrow if the unit was too large.
    known = belief.spread[place, place] + belief.prior_inverse[place, place]
    belief.spread[place, place] += max(0.0, 1.0 / assumption.precision - known)


def _is_rising(values: Sequence[int]) -> bool:
    return all(before < later for before, later in pairwise(values))


def _as_double(rows: Features) -> Matrix:
    """In double precision, in which kernels take sums anyway: so they are compiled once."""
    found = np.asarray(rows, dtype=np.float64)
    found.setflags(write=False)
    return found


def _added(total: float, values: Vector) -> float:
    """Sum, one value after the other, so that parts add up to exactly what the whole does."""
    return float(np.add.accumulate(np.concatenate([[total], values]))[-1])


def finite_like(array: Matrix, values: Any) -> Matrix:
    """Numbers in the same shape, none so large that its square is not finite."""
    found = np.array(values, dtype=np.float64)
    if found.shape != array.shape or not (np.abs(found) < 1e150).all():
        raise ValueError(f"an array of shape {array.shape} was kept as {found.shape}")
    return found


def _is_covariance(matrix: Matrix) -> bool:
    """Whether no direction has a negative variance, rounding aside."""
    values = np.linalg.eigvalsh(matrix)
    return bool(values[0] >= -1e-9 * abs(values[-1]))


_COUNTS = ("n_rounds", "n_choices", "evidence", "chance")
_RANDOM_PICKS = "lapses"
"""Key of `random_picks` in saved states, which later releases must still read."""
