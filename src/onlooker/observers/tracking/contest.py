"""Families and the model-free observer predict a growing log side by side, one step ahead, until the picks decide.

The constants that a family predicts with were tuned on earlier rounds only: textbook ones at first, then those that
the first 250, 500 and 2,000 rounds make most probable. So no round tunes what it judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.documents import within
from onlooker.base.threads import ordered_map
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, finite_log
from onlooker.observers.dynamic.follower import SIZING
from onlooker.observers.dynamic.follower import Follower as ModelFree
from onlooker.observers.dynamic.members import PRIOR
from onlooker.observers.tracking.assumptions import FAMILIES, Assumption, Reference, in_order
from onlooker.observers.tracking.follower import Follower
from onlooker.observers.tracking.path import Checkpoint, next_checkpoint
from onlooker.observers.tracking.proof import FIRST, SURE, Lead, Residuals, Scores
from onlooker.observers.tracking.tuning import Tuned, mixed, refined, textbook, tune
from onlooker.observers.tracking.variants import (
    FIXED_GREEDY,
    FIXED_SOFTMAX,
    GRADIENT_GREEDY,
    GRADIENT_SOFTMAX,
    chosen_coding,
    chosen_length,
    fixed_policies,
    fixed_policy,
    gradient_learner,
    gradient_learners,
    in_turns,
    settle_fixed,
    with_noise,
    with_past,
)
from onlooker.observers.tracking.variation import in_own_units

STEPS = (2 * FIRST, 4 * FIRST, 16 * FIRST)
"""Rounds after which constants are tuned."""
LEAST = 8 * FIRST
"""Rounds before which nothing is named: residuals are looked at once constants are tuned to enough rounds."""
AHEAD = 2.0
"""Standard errors by which a family has to be ahead of the model-free observer."""
APART = 1.0
"""Standard errors by which it has to be ahead of every other learner, besides odds of twenty to one."""
PART = 0.1
"""Share of its lead over the model-free observer by which it may be behind a form of itself that is not named."""
ROUNDING = 1e-9
"""By so much a sum of probabilities may exceed 1."""
OUT = 4.3
"""Standard deviations from which a residual speaks against a family. Of some thirty, one is so far out by chance in a
log of 2,000; the filters' approximations take residuals of true families up to there. Learners that only a residual
tells from a family, in `benchmarks/naming.py`, are 7 out or more (one of 17 was not)."""
WORTH = 0.02
"""Share of its lead over the model-free observer that a residual may be worth: with many arms and features leads are
large, and so is what the filters' approximations leave."""
TOLERATED = 3000
"""Rounds up to which `OUT` holds; the filters are approximate, and beyond that their own errors would show."""
SOME = 4
"""After the last step residuals are looked at in every so many of the stretches in which rounds are taken."""
SPAN, WORK = 16, 80**3
"""Residuals need the probabilities of all arms, which take the cube of their number; where that is more than `WORK`,
only as many spans of rounds are looked at as keep to it. With 200 arms and 50 features all would take most of the time.
"""
NOISE, FORGETS, TURNS, FIXED = "noise", "forgets", "turns", (FIXED_SOFTMAX, FIXED_GREEDY)
"""Rivals that are never named: the best family with noise on its scores, forgetting, or taking turns with another
learner; policies that do not learn."""
GRADIENT = (GRADIENT_SOFTMAX, GRADIENT_GREEDY)
"""Rivals that are never named and that a family has to be ahead of like another family: gradient steps."""
HORIZON = 1000.0
"""Rounds over which one forgets: a learner that does so faster is still nearer to this than to none."""
LEARNING = 3
"""Epochs in which a learner has to be ahead of policies that do not learn: later it may hardly learn any more."""
HOPELESS = 30.0, 4.0
"""Log-probability and standard errors by which a family that is behind is not followed any further."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the picks prove."""

    nearest: str
    """The family that predicts best, proved or not."""
    lacking: tuple[str, ...]
    """What it lacks for a proof."""
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
    fixed: float
    """Its lead over a policy that does not learn, in the rounds in which it learns most."""
    forgetting: Lead
    """Its lead over itself with forgetting."""
    gradient: Lead
    """Its lead over learners that make gradient steps, the one that it is least surely ahead of."""
    turns: Lead
    """Its lead over itself taking turns with another learner."""

    @property
    def name(self) -> str | None:
        """Of the family that they prove; None if they prove none."""
        return None if self.lacking else self.nearest


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
    leader: str | None = None
    """The family that had predicted best at the last of all steps; None before it."""
    thin: int = 1
    """Residuals are looked at in one of so many spans of rounds."""
    early: Vector = field(default_factory=lambda: np.empty(0))
    """What the model-free observer gave every arm of the rounds so far, while they are too few to prove anything."""
    early_times: Vector | None = None
    """Times of these rounds."""
    coding: Reference | None = None
    """In which all take the features, once something can be proved; answers are for the log's own."""
    length: float | None = None
    """Of arms in the units in which families take the features; None for features as they are."""

    def __post_init__(self) -> None:
        self.model_free = ModelFree(self.n_features)

    def watch(self, log: BanditLog, times: Vector | None, rounds: BanditLog | None) -> None:
        """Take in the next rounds; `rounds` has all so far, with these, and may be None once all steps were taken.

        Families take part as soon as something can be proved, then from the first round on.
        """
        if self.coding is not None:
            log, rounds = self.coding.log(log), None if rounds is None else self.coding.log(rounds)
        arms = self._follow_model_free(log, times)
        seen = self.model_free.bank.n_rounds
        if not self.n_rounds:
            assert rounds is not None
            self._keep(arms, times)
            if seen < LEAST:
                return
            self.coding = chosen_coding(rounds, self.ridge)
            if self.coding is not None:
                rounds, self.path = self.coding.log(rounds), []
                self.model_free = ModelFree(rounds.n_features)
                self.early = self._follow_model_free(rounds, self.early_times)
            self.length = chosen_length(rounds, self.ridge)
            log, arms, self.early, self.early_times = rounds, self.early, np.empty(0), None
            self._begin(log[: STEPS[0]])
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

    def _keep(self, arms: Vector, times: Vector | None) -> None:
        """Keep what was predicted of the next rounds, and their times if all had some."""
        has_times = times is not None and (self.early_times is not None or not len(self.early))
        before = np.empty(0) if self.early_times is None else self.early_times
        self.early_times = np.concatenate([before, times]) if has_times and times is not None else None
        self.early = np.concatenate([self.early, arms])

    def here(self) -> Checkpoint:
        """The model-free weights after the rounds so far."""
        return Checkpoint.of(self.model_free.bank.n_rounds, self.theta, self.covariance)

    @property
    def theta(self) -> Vector:
        """The model-free weights."""
        found = self.model_free.bank.theta
        return found if self.coding is None else self.coding.back(self.n_features) @ found

    @property
    def covariance(self) -> Matrix:
        """Of the model-free weights; a feature that never varied has that of the prior."""
        found = self.model_free.bank.covariance
        unknown = np.isnan(np.diag(found))
        found[unknown], found[:, unknown] = 0.0, 0.0
        found[unknown, unknown] = PRIOR / self.n_features
        if self.coding is None:
            return found
        back = self.coding.back(self.n_features)
        return back @ found @ back.T

    def next_probabilities(self, log: BanditLog, places: Index) -> Vector:
        """Model-free, of every arm, were the rounds each the next; `places` says where features have their weights."""
        bank = self.model_free.bank
        if self.coding is None:
            return bank.predict(log, places)
        rows = self.coding.rows(in_order(log.dense, places, self.n_features), log.offsets)
        return bank.predict(finite_log(rows, log.offsets, log.chosen), np.arange(rows.shape[1]))

    def _ahead(self) -> int:
        """Rounds until the next step, or until shares of random picks are estimated again."""
        later = [step for step in STEPS if step > self.n_rounds]
        return min([STEPS[1] - self.n_rounds % STEPS[1], *(step - self.n_rounds for step in later)])

    def grow(self, count: int) -> None:
        """Have so many features more, after the others: they were 0 in all rounds so far."""
        if self.coding is not None:
            self.coding = self.coding.grown(self.n_features, count)
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
        families = {name: one for name, one in self.rivals.items() if name in FAMILIES}
        nearest = max(
            (name for name, one in families.items() if one.follower is not None),
            key=lambda name: families[name].scores.total,
        )
        best = families[nearest]
        leads = {name: best.scores.lead(one.scores) for name, one in families.items() if name != nearest}
        gradient = min((self._over(best, name) for name in GRADIENT), key=lambda lead: lead.errors)
        runner_up = min(leads, key=lambda name: leads[name].errors)
        ahead = best.scores.lead(self.model_free_scores)
        noise, forgetting, turns = (self._over(best, name) for name in (NOISE, FORGETS, TURNS))
        fixed = min(float(best.scores.gained(self.rivals[name].scores)[:LEARNING].sum()) for name in FIXED)
        residual = best.residuals.worst() if best.residuals.n_rounds else ("", 0.0)
        behind = -max(SURE, PART * ahead.total)
        # Forecasts that allowed for it would gain half its square in log-probability.
        worth = 0.5 * residual[1] ** 2 / max(ahead.total, 1e-9)
        demands = {
            "rounds": self.n_rounds >= LEAST,
            "model-free": ahead.errors >= AHEAD,
            "fixed": fixed > SURE,
            "families": all(_is_ahead(lead) for lead in leads.values()),
            "batches": best.follower is not None and best.follower.assumption.batch == 1,
            "forgetting": forgetting.total >= behind,
            "noise": noise.total >= behind,
            "gradient": _is_ahead(gradient),
            # It has the family in it, nearly: picks that say nothing of turns leave both about even.
            "turns": turns.total > -SURE,
            "residual": worth <= WORTH
            or abs(residual[1]) <= OUT * max(1.0, best.residuals.n_rounds / TOLERATED) ** 0.5,
        }
        return Verdict(
            nearest=nearest,
            lacking=tuple(name for name, is_met in demands.items() if not is_met),
            model_free=ahead,
            runner_up=runner_up,
            over=leads[runner_up],
            residual=residual,
            noise=noise,
            fixed=fixed,
            forgetting=forgetting,
            gradient=gradient,
            turns=turns,
        )

    def _over(self, best: Rival, name: str) -> Lead:
        """Lead over a rival; none over one that does not take part yet."""
        return best.scores.lead(self.rivals[name].scores) if name in self.rivals else Lead(0.0, 0.0)

    def _follow_model_free(self, log: BanditLog, times: Vector | None) -> Vector:
        """Follow the rounds from checkpoint to checkpoint; give the probability of every arm.

        While their offers still set the units, all rounds so far are followed again, and what was found is forgotten.
        """
        if self.model_free.bank.n_rounds < SIZING:
            log, times = self.model_free.restart(log, times)
            self.path, self.early = [], np.empty(0)
        arms, done, bank = np.empty(len(log.features)), 0, self.model_free.bank
        while done < log.n_rounds:
            ahead = next_checkpoint(bank.n_rounds, self.checkpoints) - bank.n_rounds
            stop = min(done + ahead, log.n_rounds)
            found = arms[log.offsets[done] : log.offsets[stop]]
            bank.follow(log[done:stop], None if times is None else times[done:stop], found)
            if stop == done + ahead:
                self.path.append(self.here())
            done = stop
        return arms

    def _begin(self, rounds: BanditLog) -> None:
        """Predict the first rounds with all constants that are usual, each family by their mixture."""
        # Not by what is kept: while units are not known, that depends on the parts in which rounds came.
        first, arms = ModelFree(rounds.n_features), np.empty(len(rounds.features))
        first.follow(rounds, None, arms)
        self.model_free_scores.add(np.log(arms[rounds.chosen_rows]))
        scaled, units, sizes = in_own_units(rounds, self.length)

        def follow(assumption: Assumption) -> Vector:
            return Follower.start(assumption, rounds.n_features, (), units, sizes).follow(rounds)

        usual = textbook(scaled, self.ridge) | gradient_learners(scaled, self.ridge)
        for name, ways in (usual | fixed_policies(scaled, self.ridge)).items():
            one = self.rivals[name] = Rival(Scores(), Residuals.start(rounds.n_features))
            one.scores.add(mixed(np.stack(list(ordered_map(follow, ways)))))
        self.n_rounds = rounds.n_rounds
        self._step(rounds)

    def _step(self, rounds: BanditLog) -> None:
        """Tune the families to all rounds so far, and go on with what they find."""
        from onlooker.kernels.margins import LIVE

        scaled, units, _ = in_own_units(rounds, self.length)
        is_last = self.n_rounds >= STEPS[2]
        known = self.tuned if is_last and units is None else None
        still = [name for name in (*FAMILIES, *GRADIENT) if self._goes_on(name)]
        order = sorted((name for name in still if name in FAMILIES), key=lambda name: -self.rivals[name].scores.total)
        left = [order[0], *(name for name in order[1:] if not self._is_hopeless(name, order[0]))]
        left = left[:2] if is_last else left
        self.tuned = tune(scaled, list(FAMILIES), ridge=self.ridge, first=known, only=left)
        by_name = {one.assumption.exploration.name: one for one in self.tuned}
        for name in left[: 1 if is_last else 2]:
            by_name[name] = with_past(scaled, by_name[name])
        if is_last:
            self.tuned, self.leader = list(by_name.values()), order[0]
        going = {name: refined(scaled, by_name[name].assumption) for name in left}
        for name in GRADIENT:
            if name in still and not self._is_hopeless(name, order[0]):
                going[name] = gradient_learner(scaled, name, self.ridge)
        if self.n_rounds == STEPS[0]:
            going |= {name: fixed_policy(scaled, name, self.ridge) for name in FIXED}
        if self.n_rounds >= STEPS[1]:
            n_arms = float(rounds.n_arms.mean())
            self.thin = max(1, round(n_arms * min(n_arms, LIVE) ** 2 / WORK))
            before = self.rivals.get(NOISE)
            guess = () if before is None or before.follower is None else (before.follower.assumption.noise,)
            going[NOISE] = with_noise(scaled, going[left[0]], *guess)
            going[FORGETS] = replace(going[left[0]], memory=1.0 - 1.0 / HORIZON)
            going[TURNS] = in_turns(going[left[0]], scaled.n_features)
            for name in (NOISE, FORGETS, TURNS):
                if name not in self.rivals:
                    self.rivals[name] = Rival(self.rivals[left[0]].scores.copy(), Residuals.start(rounds.n_features))
        self._restart(rounds, going)

    def _goes_on(self, name: str) -> bool:
        """Whether a rival is still followed; before the first step all are."""
        return self._is_followed(name) or (name in self.rivals and self.n_rounds == STEPS[0])

    def _is_followed(self, name: str) -> bool:
        return name in self.rivals and self.rivals[name].follower is not None

    def _is_hopeless(self, name: str, best: str) -> bool:
        """Whether a family is too far behind the best one to be followed any further."""
        lead = self.rivals[best].scores.lead(self.rivals[name].scores)
        return lead.total > HOPELESS[0] and lead.errors > HOPELESS[1]

    def _restart(self, rounds: BanditLog, going: dict[str, Assumption]) -> None:
        """Follow the rounds again under other assumptions; families without one stay where they are."""
        scaled, units, sizes = in_own_units(rounds, self.length)
        for one in self.rivals.values():
            one.follower = None

        def follow(assumption: Assumption) -> Follower:
            follower = Follower.start(assumption, rounds.n_features, (), units, sizes)
            follower.follow(rounds)
            return follower

        for name, found in zip(going, ordered_map(follow, list(going.values())), strict=True):
            self.rivals[name].follower = found
        softmax = self.rivals[FIXED_SOFTMAX].follower
        if softmax is not None:
            settle_fixed(softmax, scaled)

    def _take(self, log: BanditLog, arms: Vector) -> None:
        """Have all predict some rounds, of which the model-free observer gave `arms`."""
        stretch = self.n_rounds // STEPS[1]
        checked = self.n_rounds >= STEPS[1] and (self.n_rounds < STEPS[2] or stretch % SOME == 0)
        if not checked or self.thin == 1:
            self._take_alike(log, arms, checked=checked)
            return
        done = 0
        while done < log.n_rounds:
            span, within_it = divmod(self.n_rounds, SPAN)
            looked_at = span % self.thin == 0
            ahead = SPAN if looked_at else SPAN * (self.thin - span % self.thin)
            stop = min(log.n_rounds, done + ahead - within_it)
            part = arms[log.offsets[done] : log.offsets[stop]]
            self._take_alike(log[done:stop], part, checked=looked_at)
            done = stop

    def _take_alike(self, log: BanditLog, arms: Vector, *, checked: bool) -> None:
        """Have all predict some rounds, with or without a look at the residuals."""
        going = [(name, one) for name, one in self.rivals.items() if one.follower is not None]

        def follow(pair: tuple[str, Rival]) -> tuple[Vector, Vector | None]:
            assert pair[1].follower is not None
            found = np.empty(len(arms)) if checked and pair[0] in FAMILIES else None
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
            "early": self.early.tolist(),
            **({} if self.early_times is None else {"early_times": self.early_times.tolist()}),
            **({} if self.coding is None else {"coding": self.coding.to_list()}),
            **({} if self.length is None else {"length": self.length}),
            **({} if self.leader is None else {"leader": self.leader}),
            **({} if self.thin == 1 else {"thin": self.thin}),
            "path": [one.to_dict() for one in self.path],
            "model_free": self.model_free.to_dict(),
            "model_free_scores": self.model_free_scores.to_dict(),
            "tuned": [one.to_dict() for one in self.tuned],
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
        found.early = np.array(values.get("early", []), dtype=np.float64)
        if found.early.ndim != 1 or not ((found.early >= 0.0) & (found.early <= 1.0 + ROUNDING)).all():
            raise ValueError("early: a probability is not one")
        if "early_times" in values:
            found.early_times = np.array(values["early_times"], dtype=np.float64)
            if found.early_times.ndim != 1 or not np.isfinite(found.early_times).all():
                raise ValueError("early_times: a time is not one")
        with within("coding"):
            found.coding = Reference.from_list(values["coding"], n_features) if "coding" in values else None
        if "length" in values:
            found.length = as_number(values["length"], "length", above=0.0)
        found.leader, found.thin = values.get("leader"), as_whole(values.get("thin", 1), "thin", least=1)
        in_coding = n_features + (0 if found.coding is None else found.coding.width)
        with within("path"):
            found.path = [Checkpoint.from_dict(one) for one in values["path"]]
            if any(one.theta.shape != (n_features,) for one in found.path):
                raise ValueError("the path has other features")
        with within("model_free"):
            found.model_free = ModelFree.from_dict(values["model_free"])
            found.model_free_scores = Scores.from_dict(values["model_free_scores"])
        found.tuned = [Tuned.from_dict(one) for one in values["tuned"]]
        for name, one in values["rivals"].items():
            if name not in {NOISE, FORGETS, TURNS, *FIXED, *GRADIENT, *FAMILIES}:
                raise ValueError("a rival is not known")
            with within(f"rivals.{name}"):
                kept = one["follower"]
                found.rivals[name] = Rival(
                    Scores.from_dict(one["scores"]),
                    Residuals.from_dict(one["residuals"], in_coding),
                    None if kept is None else Follower.from_dict(kept, in_coding),
                )
        if found.model_free.n_features != in_coding or (found.n_rounds and not found.rivals):
            raise ValueError("the forecasts are of another log")
        return found


def _is_ahead(lead: Lead) -> bool:
    """Whether one learner explains the picks better than another, as far as naming it goes."""
    return lead.total >= SURE and lead.errors >= APART
