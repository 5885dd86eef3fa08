"""Families and the model-free observer predict a growing log side by side, one step ahead, until the picks decide.

The constants that a family predicts with were tuned on earlier rounds only: textbook ones at first, then those that
the first 125, 500 and 2,000 rounds make most probable. So no round tunes what it judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.base.checks import as_whole
from onlooker.base.documents import within
from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.layouts import divided
from onlooker.logs.log import BanditLog, finite_log
from onlooker.observers.dynamic.follower import Follower as ModelFree
from onlooker.observers.dynamic.laws import PRIOR
from onlooker.observers.tracking.exploration import FAMILIES, Assumption, Softmax
from onlooker.observers.tracking.follower import Follower
from onlooker.observers.tracking.path import Checkpoint, next_checkpoint
from onlooker.observers.tracking.proof import FIRST, SURE, Lead, Residuals, Scores
from onlooker.observers.tracking.tuning import Tuned, mixed, textbook, tune, with_noise
from onlooker.observers.tracking.variation import own_units

STEPS = (FIRST, 4 * FIRST, 16 * FIRST)
"""Rounds after which constants are tuned."""
LEAST = 8 * FIRST
"""Rounds before which nothing is named: residuals are looked at once constants are tuned to enough rounds."""
AHEAD = 2.0
"""Standard errors by which a family has to be ahead, of the model-free observer and of every other family."""
OUT = 4.5
"""Standard deviations from which a residual speaks against a family."""
TOLERATED = 4000
"""Rounds up to which `OUT` holds; the filters are approximate, and beyond that their own errors would show."""
NOISE = "noise"
"""Name of the rival that is the best family with noise on its scores: it is never named itself."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the picks prove."""

    name: str | None
    """Of the family that they prove; None if they prove none."""
    nearest: str
    """The family that predicts best, proved or not."""
    model_free: Lead
    """Its lead over the model-free observer."""
    runner_up: str
    """The family that it is least surely ahead of."""
    over: Lead
    """Its lead over that one."""
    residual: tuple[str, float]
    """What it explains worst, in standard deviations."""
    noise: Lead
    """Its lead over itself with noise on the scores."""


@dataclass(eq=False)
class Rival:
    """One forecast that takes part."""

    scores: Scores
    residuals: Residuals
    follower: Follower | None = None
    """None for the model-free observer, and for a family that is too far behind to go on."""


@dataclass(eq=False)
class Contest:
    """All forecasts of one log.

    Examples
    --------
    >>> from onlooker import Environment, LinTS, simulate
    >>> log = simulate(Environment(5, 20), LinTS(), n_rounds=1500).log
    >>> contest = Contest(ridge=1.0, n_features=5)
    >>> contest.watch(log, None, log)
    >>> contest.verdict().name, contest.verdict().model_free.errors > 2
    ('TS', True)
    """

    ridge: float
    n_features: int
    checkpoints: tuple[int, ...] | None = None
    n_rounds: int = 0
    """Rounds that families have predicted."""
    path: list[Checkpoint] = field(default_factory=list)
    """The model-free weights at checkpoints."""
    model_free: ModelFree = field(init=False)
    model_free_scores: Scores = field(default_factory=Scores)
    rivals: dict[str, Rival] = field(default_factory=dict)
    tuned: list[Tuned] = field(default_factory=list)
    """What the last step made of the families; nothing before the first."""
    held: Vector = field(default_factory=lambda: np.empty(0))
    """What the model-free observer gave to every arm so far, until families are looked at."""

    def __post_init__(self) -> None:
        self.model_free = ModelFree(self.n_features)

    def watch(self, log: BanditLog, times: Vector | None, rounds: BanditLog | None) -> None:
        """Take in the next rounds; `rounds` has all so far, with these, and may be None once all steps were taken."""
        arms = self._follow_model_free(log, times)
        seen = self.model_free.bank.n_rounds
        if not self.n_rounds:
            arms = np.concatenate([self.held, arms])
            self.held = arms if seen < LEAST else np.empty(0)
            if seen < LEAST:
                # Nothing is named before, so that short logs need not be followed by all families.
                return
            assert rounds is not None
            log = rounds
            self._begin(rounds[:FIRST])
        while self.n_rounds < seen:
            start = log.n_rounds - (seen - self.n_rounds)
            stop = min(log.n_rounds, start + self._ahead())
            for first, last in ragged.blocks(log.offsets, log.n_features):
                lower, upper = max(first, start), min(last, stop)
                if lower < upper:
                    self._take(log[lower:upper], arms[log.offsets[lower] : log.offsets[upper]])
            if self.n_rounds in STEPS:
                assert rounds is not None
                self._step(rounds[: self.n_rounds])
            elif self.n_rounds % STEPS[1] == 0:
                for one in self.rivals.values():
                    if one.follower is not None:
                        one.follower.estimate_random_picks()

    def here(self) -> Checkpoint:
        """The model-free weights after the rounds so far."""
        bank = self.model_free.bank
        return Checkpoint.of(bank.n_rounds, bank.theta, self.covariance)

    @property
    def covariance(self) -> Matrix:
        """Of the model-free weights; a feature that never varied has that of the prior."""
        found = self.model_free.bank.covariance
        unknown = np.isnan(np.diag(found))
        found[unknown], found[:, unknown] = 0.0, 0.0
        found[unknown, unknown] = PRIOR / self.n_features
        return found

    def _ahead(self) -> int:
        """Rounds until the next step, or until shares of random picks are estimated again."""
        later = [step for step in STEPS if step > self.n_rounds]
        return min([STEPS[1] - self.n_rounds % STEPS[1], *(step - self.n_rounds for step in later)])

    def grow(self, count: int) -> None:
        """Have so many features more, after the others: they were 0 in all rounds so far."""
        self.n_features += count
        self.model_free.grow(count)
        self.path = [one.grown(count, (PRIOR / self.n_features) ** 0.5) for one in self.path]
        for one in self.rivals.values():
            one.residuals.grow(count)
            if one.follower is not None:
                one.follower.grow(count)

    def verdict(self) -> Verdict | None:
        """What the picks prove so far; None before there are enough rounds to compare anything."""
        if not self.rivals:
            return None
        going = {name: one for name, one in self.rivals.items() if one.follower is not None and name != NOISE}
        nearest = max(going, key=lambda name: going[name].scores.total)
        best = going[nearest]
        leads = {
            name: best.scores.lead(one.scores) for name, one in self.rivals.items() if name not in {nearest, NOISE}
        }
        runner_up = min(leads, key=lambda name: leads[name].errors)
        ahead = best.scores.lead(self.model_free_scores)
        noise = best.scores.lead(self.rivals[NOISE].scores) if NOISE in self.rivals else Lead(0.0, 0.0)
        residual = best.residuals.worst() if best.residuals.n_rounds else ("", 0.0)
        limit = OUT * max(1.0, best.residuals.n_rounds / TOLERATED) ** 0.5
        proved = (
            self.n_rounds >= LEAST
            and min(ahead.errors, leads[runner_up].errors) >= AHEAD
            and abs(residual[1]) <= limit
            and _is_noiseless(nearest, noise)
        )
        return Verdict(
            name=nearest if proved else None,
            nearest=nearest,
            model_free=ahead,
            runner_up=runner_up,
            over=leads[runner_up],
            residual=residual,
            noise=noise,
        )

    def _follow_model_free(self, log: BanditLog, times: Vector | None) -> Vector:
        """Follow the rounds from checkpoint to checkpoint; give the probability of every arm."""
        arms, done, bank = np.empty(len(log.features)), 0, self.model_free
        while done < log.n_rounds:
            ahead = next_checkpoint(bank.bank.n_rounds, self.checkpoints) - bank.bank.n_rounds
            stop = min(done + ahead, log.n_rounds)
            found = arms[log.offsets[done] : log.offsets[stop]]
            bank.follow(log[done:stop], None if times is None else times[done:stop], found)
            if stop == done + ahead:
                self.path.append(self.here())
            done = stop
        return arms

    def _begin(self, rounds: BanditLog) -> None:
        """Predict the first rounds with all constants that are usual, each family by their mixture."""
        first, arms = ModelFree(self.n_features), np.empty(len(rounds.features))
        first.follow(rounds, None, arms)
        self.model_free_scores.add(np.log(arms[rounds.chosen_rows]))
        units, sizes = own_units(rounds)

        def follow(assumption: Assumption) -> Vector:
            return Follower.start(assumption, self.n_features, (), units, sizes).follow(rounds)

        for name, ways in textbook(_in_units(rounds), self.ridge).items():
            one = self.rivals[name] = Rival(Scores(), Residuals.start(self.n_features))
            one.scores.add(mixed(np.stack(list(ordered_map(follow, ways)))))
        self.n_rounds = rounds.n_rounds
        self._step(rounds)

    def _step(self, rounds: BanditLog) -> None:
        """Tune the families to all rounds so far, and go on with what they find."""
        scaled = _in_units(rounds)
        known = self.tuned if rounds.n_rounds == STEPS[2] and scaled is rounds else None
        self.tuned = tune(scaled, list(FAMILIES), ridge=self.ridge, first=known)
        going = {one.assumption.exploration.name: one.assumption for one in self.tuned}
        if self.n_rounds >= STEPS[2]:
            best = sorted(going, key=lambda name: -self.rivals[name].scores.total)[:2]
            going = {name: one for name, one in going.items() if name in best}
        if self.n_rounds >= STEPS[1]:
            leader = max(going, key=lambda name: self.rivals[name].scores.total)
            before = self.rivals.get(NOISE)
            scores = self.rivals[leader].scores.copy() if before is None else before.scores
            going[NOISE] = with_noise(scaled, going[leader])
            self.rivals[NOISE] = Rival(scores, Residuals.start(self.n_features))
        self._restart(rounds, going)

    def _restart(self, rounds: BanditLog, going: dict[str, Assumption]) -> None:
        """Follow the rounds again under other assumptions; families without one stay where they are."""
        units, sizes = own_units(rounds)
        for one in self.rivals.values():
            one.follower = None

        def follow(assumption: Assumption) -> Follower:
            follower = Follower.start(assumption, self.n_features, (), units, sizes)
            follower.follow(rounds)
            return follower

        for name, found in zip(going, ordered_map(follow, list(going.values())), strict=True):
            self.rivals[name].follower = found

    def _take(self, log: BanditLog, arms: Vector) -> None:
        """Have all predict some rounds, of which the model-free observer gave `arms`."""
        going = [(name, one) for name, one in self.rivals.items() if one.follower is not None]
        checked = self.n_rounds >= STEPS[1]

        def follow(pair: tuple[str, Rival]) -> tuple[Vector, Vector | None]:
            assert pair[1].follower is not None
            found = np.empty(len(arms)) if checked and pair[0] != NOISE else None
            return pair[1].follower.follow(log, arms=found), found

        made = list(ordered_map(follow, going))
        self.model_free_scores.add(np.log(arms[log.chosen_rows]))
        known = {name: found for (name, _), (_, found) in zip(going, made, strict=True) if found is not None}
        for (name, one), (picks, _) in zip(going, made, strict=True):
            one.scores.add(picks)
            if name in known:
                others = {other: found for other, found in known.items() if other != name}
                one.residuals.add(log, known[name], {"model-free": arms, **others})
        self.n_rounds += log.n_rounds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {
            "n_rounds": self.n_rounds,
            "path": [one.to_dict() for one in self.path],
            "model_free": self.model_free.to_dict(),
            "model_free_scores": self.model_free_scores.to_dict(),
            "tuned": [one.to_dict() for one in self.tuned],
            "held": self.held.tolist(),
            "rivals": {
                name: {
                    "scores": one.scores.to_dict(),
                    "residuals": one.residuals.to_dict(),
                    "follower": None if one.follower is None else one.follower.to_dict(),
                }
                for name, one in self.rivals.items()
            },
        }

    @classmethod
    def from_dict(
        cls, values: dict[str, Any], ridge: float, n_features: int, checkpoints: tuple[int, ...] | None
    ) -> Contest:
        """Give back what `to_dict` was made of."""
        found = cls(ridge, n_features, checkpoints, as_whole(values["n_rounds"], "n_rounds"))
        with within("path"):
            found.path = [Checkpoint.from_dict(one) for one in values["path"]]
            if any(one.theta.shape != (n_features,) for one in found.path):
                raise ValueError("the path has other features")
        with within("model_free"):
            found.model_free = ModelFree.from_dict(values["model_free"])
            found.model_free_scores = Scores.from_dict(values["model_free_scores"])
        found.tuned = [Tuned.from_dict(one) for one in values["tuned"]]
        found.held = np.array(values.get("held", []), dtype=np.float64)
        for name, one in values["rivals"].items():
            if name != NOISE and name not in FAMILIES:
                raise ValueError("a rival is not known")
            with within(f"rivals.{name}"):
                kept = one["follower"]
                found.rivals[name] = Rival(
                    Scores.from_dict(one["scores"]),
                    Residuals.from_dict(one["residuals"], n_features),
                    None if kept is None else Follower.from_dict(kept, n_features),
                )
        if found.model_free.n_features != n_features or (found.n_rounds and not found.rivals):
            raise ValueError("the forecasts are of another log")
        if found.held.ndim != 1 or not ((found.held > 0) & (found.held <= 1)).all():
            raise ValueError("what was predicted is no probability")
        return found


NOISELESS = 1.0
"""Standard errors by which a softmax has to be ahead of normal noise, which a feature that is not logged looks like."""


def _is_noiseless(name: str, lead: Lead) -> bool:
    """Whether scores have no normal noise on them, by the lead over the same family with such noise."""
    if name == Softmax.name:
        return lead.errors >= NOISELESS
    # Noise that hardly matters may be surely there: what the filter approximates looks like it.
    return lead.total > -SURE or lead.errors > -AHEAD


def _in_units(rounds: BanditLog) -> BanditLog:
    """The rounds with their features counted in units of their own, where they differ much in size."""
    units, _ = own_units(rounds)
    if units is None:
        return rounds
    return finite_log(divided(rounds.features, units), rounds.offsets, rounds.chosen)
