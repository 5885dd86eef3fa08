"""The model-free observer: weights that walk, whatever the learner is."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_whole, counted
from onlooker.base.documents import read_document, within
from onlooker.base.errors import (
    InputError,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    TooFewRoundsWarning,
)
from onlooker.base.files import write_text
from onlooker.base.text import one_line, shown
from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Progress, Vector
from onlooker.imitation.choice_model import LINEAR, Linear, ScoreModel, as_score
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Parts, parts_of
from onlooker.logs.policy import LinearPolicy, crossing_document, crossing_of
from onlooker.observers.base import Observer, in_basis
from onlooker.observers.dynamic.follower import Follower
from onlooker.observers.dynamic.members import as_times
from onlooker.observers.dynamic.path import WeightPath
from onlooker.observers.dynamic.smoother import Rounds, smooth_probabilities
from onlooker.observers.dynamic.weights import smooth_path

SCHEMA = "onlooker.dynamic/1"
"""Written into every saved state; a file with another one is refused."""


class DynamicImitation(Observer):
    """Follow what a learner picks by, round by round, without a model of how it learns.

    Picks are softmax in the scores, some are random, and the weights behind the scores walk. How they walk is not
    chosen: several laws of motion, from none at all to jumps after improbable picks, follow the log side by side, and
    each counts by how well it predicted the picks so far. The share of random picks is estimated in the same way. So
    nothing about a round uses its pick or a later one, and no constant is set in hindsight.

    Parameters
    ----------
    checkpoints
        Rounds after which `path_` has the weights, the last round beside them; None takes 60, evenly spread.
    score
        How features become an arm's score: `Linear()`, or one that is linear in a basis, `Additive()` or `Products()`,
        the name of one, or `"auto"`. The basis is chosen on the second half of the log, and its weights are followed:
        `path_`, `covariance_` and `summary()` are of these. `propensities` one step ahead choose it from the rounds
        before. Kept as `score_model`, since `score` is a method.

    Attributes
    ----------
    policy_, theta_
        The weights at the end of the log, in logits.
    covariance_
        Of the weights at the end, shape (d, d). Beyond 64 features only variances are followed, and covariances are
        those between the laws alone. NaN for a feature that never differed within a round. Where every arm has weights
        of its own, weights, covariance and path are those of the differences to the mean over the arms.
    path_
        The weights over time with standard errors, given the picks before and after. After `partial_fit`, later picks
        are those of the same call.
    lapse_
        Share of random picks at the end.
    evidence_
        Log-probability of the picks, each given those before it. With a score that is not linear its basis is taken as
        given; `propensities` chooses that from the rounds before too.
    chance_
        The same, if every pick were random.
    changes_
        Rounds before which the weights jumped, beyond what their walk explains; often there are none.
    n_rounds_, n_choices_
        Rounds followed, and how many of them offered a choice.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 20), EpsilonGreedy(0.1), n_rounds=2000).log
    >>> observer = DynamicImitation().fit(log)
    >>> observer.evidence_ > observer.chance_, round(observer.lapse_, 1)
    (True, 0.1)

    How the learner picked in each round, from the picks before it:

    >>> probabilities = observer.propensities(log)
    >>> bool(np.log(probabilities[log.chosen_rows]).sum().round(6) == round(observer.evidence_, 6))
    True

    Later rounds can be added, with the same weights as from one fit:

    >>> parts = DynamicImitation().fit(log[:1500]).partial_fit(log[1500:])
    >>> bool((parts.theta_ == observer.theta_).all())
    True
    """

    policy_: Any
    lapse_: float
    evidence_: float
    chance_: float
    n_rounds_: int
    n_choices_: int
    warnings_: tuple[str, ...]
    _earlier: tuple[WeightPath, tuple[int, ...]] | None
    _pending: Rounds | None

    _stored: ClassVar[Mapping[str, str]] = {"score": "score_model"}

    def __init__(self, *, checkpoints: Sequence[int] | None = None, score: ScoreModel | str = LINEAR) -> None:
        self.checkpoints = checkpoints
        self.score_model = score

    def fit(
        self,
        log: BanditLog | Parts,
        *,
        times: Any = None,
        gaps: ArrayLike | str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Follow the learner from its first round.

        `times`, numbers or dates, one per round, tell how far apart the rounds are: weights move more in a long gap.
        Without them the log's own are used; where it has none, or only text, all gaps count the same. A log that is
        not in memory, as `scan_log` gives it, is followed part by part, with the same result.

        Where rounds were lost, `gaps` has how many before each round, or says where that is found: `"ids"` or `"times"`
        (see `fill_gaps`). The learner is taken to have learned there from picks like those nearby; `n_lost_` counts.
        """
        self._inner = None
        if not isinstance(as_score(self.score_model), Linear):
            return self._fit_in_basis(log, self.score_model, times=times, gaps=gaps, progress=progress)
        if gaps is not None and times is not None:
            raise InputError("both times and gaps are given: pass one of them (gaps='times' uses the log's times)")
        self._drawn = self._combined = None
        log = self._fill(log, gaps)
        if isinstance(log, BanditLog) and log.possible is not None:
            return self._fit_drawn(log, lambda one, known: one.fit(known, times=times), lambda _: True)
        if not isinstance(log, Parts) and not as_log(log).n_rounds:
            raise InputError("the log has no rounds: there is nothing to follow")
        self._wanted()
        follower = Follower(log.n_features)
        if not isinstance(log, Parts):
            moments = as_times(times, log)
            follower.follow(log, moments, progress=progress)
        else:
            moments = self._follow_parts(follower, log, times)
        self._named, self._earlier = (log.feature_names, log.categories, getattr(log, "crossing", None)), None
        self._pending = Rounds.of(log, moments, None, follower.bank.copy())
        self._remember(log)
        return self._learn(follower)

    def partial_fit(self, log: BanditLog | Parts, *, times: Any = None, progress: Progress | None = None) -> Self:
        """Go on with the rounds after those seen so far; only `path_` and `changes_` can tell it from one fit.

        If it fails, nothing has changed.
        """
        if not hasattr(self, "policy_"):
            return self.fit(log, times=times, progress=progress)
        if self._inner is not None:
            inner, basis = self._inner
            log = self._in_order(as_log(log, f"score={self.score_model!r}"))
            inner = deepcopy(inner).partial_fit(basis.basis(log), times=times, progress=progress)
            return self._adopt(inner, basis, log)
        self._check_picks_seen(log)
        if isinstance(log, Parts):
            kept = self.__dict__.copy()
            try:
                for part in parts_of(log):
                    self.partial_fit(part)
            except BaseException:
                self.__dict__ = kept
                raise
            return self
        log = self._in_order(log)
        moments, before = as_times(times, log), self._follower
        follower = before.copy()
        follower.follow(log, moments, progress=progress)
        if not log.n_rounds:
            return self
        if before.waiting is None:
            self._earlier = self._smoothed()
            self._pending = Rounds.of(log, moments, before.bank, follower.bank.copy())
        else:
            self._earlier = None
            self._pending = Rounds.of(*before.with_waiting(log, moments), None, follower.bank.copy())
        self._remember(log, more=True)
        return self._learn(follower)

    def propensities(self, log: BanditLog, ahead: bool = True, *, times: Any = None) -> Vector:  # noqa: FBT001, FBT002
        """With what probability the learner picked each arm in its round, one per row of the log; none is 0.

        From the picks before the round alone; with `ahead=False` from all picks but the round's own, which is nearer to
        what it was. Give the log that was fitted, or one that begins with it; other rounds are taken to continue after
        those that were fitted. Pass the `times` that were given to `fit`. The observer stays as it is.
        """
        self._fitted()
        if self._inner is not None:
            return self._propensities_in_basis(log, ahead=ahead, **({} if times is None else {"times": times}))
        log = self._in_order(as_log(log, "propensities"))
        filled = self._filled(log)
        if filled is not None:
            return self.propensities(filled[0], ahead)[filled[1]]
        if ahead and log.possible is not None:
            return super().propensities(log)
        drawn = self._average_own(log, lambda one, known: one.propensities(known, ahead, times=times))
        if drawn is not None:
            return drawn
        moments = as_times(times, log)
        own = self._is_followed(log, moments)
        follower = Follower(log.n_features) if own else self._follower.copy()
        rounds, moments_of_all = follower.with_waiting(log, moments)
        before = None if own or follower.waiting is not None else self._follower.bank
        found = np.empty(int(log.offsets[-1]))
        follower.follow(log, moments, found)
        if own and log.n_rounds == self.n_rounds_ and not np.isclose(follower.bank.evidence, self.evidence_, rtol=1e-9):
            raise InputError("the rounds were fitted with other times: pass the times that were given to fit")
        if not ahead and log.n_rounds:
            smoothed = np.empty(int(rounds.offsets[-1]))
            smooth_probabilities(Rounds.of(rounds, moments_of_all, before, follower.bank), smoothed)
            found = smoothed[len(smoothed) - len(found) :]
        return found

    def predicted_ahead(self, log: BanditLog, *, times: Any = None) -> Vector:
        """What `fit(log).propensities(log)` gives, without the fit; the observer stays as it is."""
        if not isinstance(as_score(self.score_model), Linear):
            return self._ahead_in_basis(as_log(log), times)
        if as_log(log).possible is not None:
            return super().predicted_ahead(log)
        found, follower = np.empty(int(as_log(log).offsets[-1])), Follower(log.n_features)
        follower.follow(log, as_times(times, log), found)
        return found

    def _is_followed(self, log: BanditLog, moments: Vector | None) -> bool:
        """Whether the log begins with the rounds that were followed; of a state that was loaded, by their evidence."""
        if self._fitted_rounds is not None:
            return self._is_own(log)
        first = self.n_rounds_
        if log.n_rounds < first:
            return False
        follower = Follower(log.n_features)
        follower.follow(log[:first], None if moments is None else moments[:first])
        return bool(np.isclose(follower.bank.evidence, self.evidence_, rtol=1e-9))

    @in_basis
    def _next_probabilities(self, log: BanditLog) -> Vector:
        """Random picks included."""
        if self._drawn is not None:
            return self._average(log, lambda one, these: one._next_probabilities(these))  # noqa: SLF001  of its own class
        places = self.policy_.positions(log)
        blocks = ragged.blocks(log.offsets, log.n_features)
        bank = self._follower.bank
        found = ordered_map(lambda block: bank.predict(log[block[0] : block[1]], places), blocks)
        return np.concatenate([np.empty(0), *found])

    @property
    @in_basis
    def covariance_(self) -> Matrix:
        """Of the weights at the end, shape (d, d)."""
        self._fitted()
        if self._combined is not None:
            return self._combined[1]
        found, centring = self._follower.bank.covariance, self._centring()
        if centring is None:
            return found
        never = np.isnan(found.diagonal())
        found = centring @ np.nan_to_num(found) @ centring
        found[never], found[:, never] = np.nan, np.nan
        return found

    @property
    def path_(self) -> WeightPath:
        """The weights over time, given the picks before and after."""
        return self._smoothed()[0]

    @property
    def changes_(self) -> tuple[int, ...]:
        """Rounds before which the weights jumped."""
        return self._smoothed()[1]

    def _standard_errors(self) -> Vector:
        # NaN for a feature that never differed within a round.
        return np.sqrt(np.diag(self.covariance_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that `partial_fit` needs as JSON; the log itself is not in it once 100 rounds were seen.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from onlooker import Environment, LinUCB, simulate
        >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=500).log
        >>> with TemporaryDirectory() as folder:
        ...     DynamicImitation().fit(log[:300]).save(f"{folder}/state.json")
        ...     later = DynamicImitation.load(f"{folder}/state.json").partial_fit(log[300:])
        >>> bool((later.theta_ == DynamicImitation().fit(log).theta_).all())
        True
        """
        self._fitted()
        if self._inner is not None:
            raise InputError("a state cannot hold curves or products: fit the log again when it grows")
        self._check_picks_seen()
        names, categories = self.policy_.feature_names, self.policy_.categories
        weights, changes = self._smoothed()
        document = {
            "schema": SCHEMA,
            "feature_names": None if names is None else list(names),
            "categories": None if categories is None else dict(categories),
            **({} if self.policy_.crossing is None else crossing_document(self.policy_.crossing)),
            "checkpoints": None if self.checkpoints is None else [int(one) for one in self.checkpoints],
            "path": weights.to_dict(),
            "changes": list(changes),
            "follower": self._follower.to_dict(),
        }
        write_text(path, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DynamicImitation:
        """Give back an observer that `save` wrote. Nothing in the file is run."""
        document = read_document(path, [SCHEMA], "state of a DynamicImitation", writer="DynamicImitation.save")
        try:
            with within("follower"):
                follower = Follower.from_dict(document["follower"])
            with within("path"):
                weights = WeightPath.from_dict(document["path"], follower.n_features)
            changes = tuple(as_whole(one, "a change") for one in document["changes"])
            observer = cls(checkpoints=document["checkpoints"])
            observer._wanted()
            observer._named = (document["feature_names"], document["categories"], crossing_of(document))
            observer._earlier, observer._pending = (weights, changes), None
            with warnings.catch_warnings():
                # They were given when the state was saved, and are in `warnings_`.
                warnings.simplefilter("ignore", OnlookerWarning)
                return observer._learn(follower)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            reason = one_line(error, 200)
            raise InputError(f"{shown(path)}: is damaged ({reason}), it is not a state: save it again") from error

    def __getstate__(self) -> dict[str, Any]:
        # The log is not part of what was learned: what still needs it is found first.
        if hasattr(self, "policy_"):
            self._smoothed()
        return self.__dict__.copy()

    def _wanted(self) -> list[int] | None:
        if self.checkpoints is None:
            return None
        return [as_whole(one, "a checkpoint", least=1) for one in self.checkpoints]

    def _follow_parts(self, follower: Follower, log: Parts, times: Any) -> Vector | None:
        if times is not None:
            raise InputError("times are passed for a log in parts: give the log its own, or read it into memory")
        moments = []
        for part in parts_of(log):
            moments.append(as_times(None, part))
            follower.follow(part, moments[-1])
        if not follower.bank.n_rounds:
            raise InputError("the log has no rounds: there is nothing to follow")
        known = [one for one in moments if one is not None]
        return np.concatenate(known) if known else None

    def _smoothed(self) -> tuple[WeightPath, tuple[int, ...]]:
        """The path and the changes; what is not smoothed yet is smoothed now, and its rounds are let go of."""
        self._fitted()
        if self._inner is not None:
            return self._inner[0]._smoothed()  # noqa: SLF001  of its own class
        if self._pending is not None:
            path, changes = smooth_path(self._pending, self._wanted(), self._centring())
            if self._earlier is not None:
                path = self._earlier[0].joined(path, self._wanted())
                changes = (*self._earlier[1], *changes)
            self._earlier, self._pending = (path, changes), None
        assert self._earlier is not None, "nothing was followed yet"
        return self._earlier

    def _centring(self) -> Matrix | None:
        crossing = self._named[2]
        return None if crossing is None else crossing.centring

    def _learn(self, follower: Follower) -> Self:
        bank = follower.bank
        self._follower = follower
        centring = self._centring()
        self.policy_ = LinearPolicy(bank.theta if centring is None else centring @ bank.theta, *self._named)
        self.lapse_ = bank.lapse
        self.evidence_ = bank.evidence
        self.chance_ = bank.chance
        self.n_rounds_ = bank.n_rounds
        self.n_choices_ = bank.n_choices
        self._warn(list(self._findings()), stacklevel=3)
        return self

    def _findings(self) -> Iterator[OnlookerWarning]:
        alone = self.n_rounds_ - self.n_choices_ - self.n_lost_
        if alone:
            yield OneArmRoundsWarning(f"in {counted(alone, 'round')} a single arm was offered: nothing was chosen")
        if self.n_choices_ < 2 * len(self.theta_):
            yield TooFewRoundsWarning(
                f"{self.n_choices_} rounds with a choice for {len(self.theta_)} features: the intervals are wide; keep "
                "more rounds or fewer features"
            )
        elif self.evidence_ <= self.chance_:
            yield NoPreferenceWarning(
                "the picks are predicted no better than by random guessing: nothing is known of what the learner values"
            )
