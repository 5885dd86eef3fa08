"""The tracking observer: follow the learner's estimate through every round, discard none."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, counted
from onlooker.base.documents import check_seal, read_document, sealed, within
from onlooker.base.errors import (
    InputError,
    NoFamilyFitsWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    RepeatedRoundsWarning,
    TooFewRoundsWarning,
)
from onlooker.base.files import write_text
from onlooker.base.memory_limit import CONTEST, FAMILY, FOLLOWING, STATE, check_work
from onlooker.base.text import one_line, shown
from onlooker.base.threads import n_threads, ordered_map
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.choice_model import LINEAR, Linear, ScoreModel, as_score
from onlooker.imitation.fit_warnings import about_collinearity
from onlooker.logs import ragged
from onlooker.logs.categories import Categories, Encoding
from onlooker.logs.crossing import Crossing
from onlooker.logs.log import BanditLog, as_log, as_narrow, check_narrow, check_room, feature_labels
from onlooker.logs.parts import Parts
from onlooker.logs.policy import LinearPolicy, crossing_document, crossing_of
from onlooker.observers.base import Observer, in_basis
from onlooker.observers.summaries import TrackingSummary, coefficients, families_of, unproved
from onlooker.observers.tracking.assumptions import FAMILIES, Exploration
from onlooker.observers.tracking.contest import Contest
from onlooker.observers.tracking.monitor import NO_PREFERENCE, Monitor
from onlooker.observers.tracking.path import Path, as_checkpoints, direction_covariance, settled_round
from onlooker.observers.tracking.recognition import Looked, followed_rounds, look
from onlooker.observers.tracking.seen import Seen

SCHEMA = "onlooker.tracking/2"
"""Written into every saved state; a file with another one is refused."""
FIRST_SCHEMA = "onlooker.tracking/1"
"""Of release 0.1: without a digest, and without a record of the rounds that were followed."""
REPEATED = ("skip", "follow")
"""What `partial_fit` does with rounds that were followed before."""

MISFIT = 0.035
"""Beyond this mean distance between predicted and observed shares, and four of its errors, no family is said to fit.

Set by looking at simulated logs: ridge learners stay below 0.01, most others are above 0.04.
"""


class TrackingObserver(Observer):
    """Follow the estimate of a ridge learner through every round: no burn-in, no rounds discarded, one pass.

    The learner's uncertainty follows from the features of its picks alone. Only its rewards are hidden, and they move
    its estimate by a random walk whose steps are known and shrink by themselves; the picks say where it went.

    Parameters
    ----------
    exploration
        How the learner is thought to explore: `UCB(alpha)`, `TS(nu)`, `Lapse(epsilon)` or `Softmax(temperature)`, with
        constants in units of the reward noise; or `"auto"`, which takes the family and the constant that make the first
        rounds most probable.
    ridge
        Weight of the identity in the learner's `V = ridge * I + sum of x x'`.
    checkpoints
        Rounds after which to keep the estimate in `path_`; None takes eight per decade.
    score
        How features become an arm's score: `Linear()`, or one that is linear in a basis, `Additive()` or `Products()`,
        the name of one, or `"auto"`. The basis is chosen on the second half of the log, and its weights are followed:
        `path_`, `covariance_` and `summary()` are of these. `propensities` one step ahead choose it from the rounds
        before. Kept as `score_model`, since `score` is a method.

    Attributes
    ----------
    policy_, theta_
        What was recovered; theta is in units of the reward noise.
    covariance_
        Of theta* around `theta_`, shape (d, d): what the picks leave open, and what the learner itself cannot know.
        A feature that has not varied within any round so far, or is collinear with others there, keeps the prior's.
    exploration_
        The exploration that was given, or that the picks prove; None if they prove none. A family is named only if it
        predicts picks better than the model-free observer (`DynamicImitation`) and than every other family, one step
        ahead on rounds that did not tune it, by two standard errors or more, if a policy that does not learn is
        behind too, and if nothing is left in the picks that it cannot explain. Without a name `theta_`, `policy_`,
        `covariance_`, `path_`, `predict_proba` and `summary()` are those of the model-free observer, whose weights are
        in logits.
    evidence_
        Log-probability of the picks that decided, by family, averaged over its constant. A family that was far behind
        after a quarter of them was left there: its evidence is at most the one given. Below 1,000 rounds, where no
        family is named, they are compared only when this is asked for.
    fits_, misfit_
        Whether the family named is proved, or the given one predicts shares of picks that are borne out; and how far
        off predicted shares are on average, beyond chance, for the given or nearest family.
    path_
        The learner's own estimate at checkpoints, with standard errors.
    settled_round_
        Round since which the estimate's direction is stable, to within its noise; None if it still moves, or no family
        is named.
    units_
        What the features were counted in, where the first picks say that the learner had them in other units, or where
        they differ in size by more than 64 times: a learner with a ridge is not given prices in thousands beside yes or
        no. `theta_`, `covariance_` and `path_` are of the features as they are. A feature that first varies later gets
        its unit then. None if there was no need.
    n_rounds_, n_choices_
        Rounds followed, and how many of them offered a choice.
    n_skipped_, n_unknown_
        Rounds of the last `partial_fit` that were skipped, since they had been followed before; and rounds that a state
        of release 0.1 followed without keeping a record of them, so that they are not recognised.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Examples
    --------
    >>> from onlooker import Environment, LinTS, direction_error, simulate
    >>> simulation = simulate(Environment(5, 20), LinTS(), n_rounds=3000)
    >>> observer = TrackingObserver().fit(simulation.log)
    >>> observer.exploration_.name
    'TS'
    >>> direction_error(observer.theta_, simulation.theta_star) < 0.05
    True

    Later rounds can be added, with the same result as from one fit:

    >>> parts = TrackingObserver().fit(simulation.log[:2500]).partial_fit(simulation.log[2500:])
    >>> bool((parts.theta_ == observer.theta_).all())
    True

    A log that grew can be given as a whole: what was followed before is recognised.

    >>> parts = TrackingObserver().fit(simulation.log[:2500]).partial_fit(simulation.log)
    >>> bool((parts.theta_ == observer.theta_).all()), parts.n_skipped_
    (True, 2500)
    """

    policy_: Any
    covariance_: Matrix
    units_: Vector | None
    exploration_: Exploration | None
    fits_: bool
    path_: Path
    settled_round_: int | None
    n_rounds_: int
    n_choices_: int
    n_skipped_: int
    n_unknown_: int
    warnings_: tuple[str, ...]
    _crossed: tuple[Categories | None, Crossing] | None
    _evidence: dict[str, float] | None

    _stored: ClassVar[Mapping[str, str]] = {"score": "score_model"}

    def __init__(
        self,
        *,
        exploration: str | Exploration = "auto",
        ridge: float = 1.0,
        checkpoints: Sequence[int] | None = None,
        score: ScoreModel | str = LINEAR,
    ) -> None:
        self.exploration = exploration
        self.ridge = ridge
        self.checkpoints = checkpoints
        self.score_model = score

    def fit(
        self, log: BanditLog | Parts, *, gaps: ArrayLike | str | None = None, progress: Progress | None = None
    ) -> Self:
        """Follow the learner from its first round.

        Where rounds were lost, `gaps` has how many before each round, or says where that is found: `"ids"` or `"times"`
        (see `fill_gaps`). The learner is taken to have learned there from picks like those nearby; `n_lost_` counts.

        A log that is not in memory, as `scan_log` gives it, is followed part by part, in one pass and with the same
        result; `progress` is called for logs in memory only.
        """
        self._inner = None
        if not isinstance(as_score(self.score_model), Linear):
            return self._fit_in_basis(log, self.score_model, gaps=gaps, progress=progress)
        self._drawn = self._combined = None
        log = self._fill(log, gaps)
        if isinstance(log, BanditLog) and log.possible is not None:
            return self._fit_drawn(
                log, lambda one, known: one.fit(known), lambda one: getattr(one.exploration_, "name", None)
            )
        monitor = self._fresh(log)
        check_room(log, _matrices(monitor))
        crossed = _crossed(log)
        before = None if log.feature_names is None or crossed is not None else Encoding.of(log)
        rounds, named = followed_rounds(log, monitor, before, progress=progress)
        self._crossed = crossed
        self._learn(monitor, Seen().after(rounds), named=named)
        self._remember(log)
        return self

    def partial_fit(self, log: BanditLog | Parts, *, repeated: str = "skip", progress: Progress | None = None) -> Self:
        """Go on with the rounds after those seen so far; the result is that of one fit to all of them.

        Features go by their names. A level of a category that is new gets a feature, after the others, as if it had
        been 0 in all rounds before.

        Rounds that were followed before are skipped, those of a log that grew or of one that comes again: `n_skipped_`
        says how many, and a `RepeatedRoundsWarning` that nothing is new. Rounds that are older than the last one
        followed are refused. `repeated="follow"` follows all rounds as new ones. After an error the observer is as it
        was before.
        """
        if repeated not in REPEATED:
            raise InputError(f"repeated is {repeated!r}: use {' or '.join(map(repr, REPEATED))}")
        if not hasattr(self, "policy_"):
            return self.fit(log, progress=progress)
        if self._inner is not None:
            inner, basis = self._inner
            log = self._in_order(as_log(log, f"score={self.score_model!r}"))
            inner = deepcopy(inner).partial_fit(basis.basis(log), repeated=repeated, progress=progress)
            return self._adopt(inner, basis, log)
        self._check_picks_seen(log)
        check_room(log if isinstance(log, Parts) else as_log(log), _matrices(self._monitor))
        before = None
        if self._crossed is not None:
            self._check_arms(log)
        elif self.policy_.feature_names is not None:
            before = Encoding.of(self.policy_)
        looked = look(log, before, self._seen) if repeated == "skip" else Looked()
        if self._seen.unknown and not self._seen.logs:
            warnings.warn(RepeatedRoundsWarning(_of_0_1(self._seen.unknown)), stacklevel=2)
        if looked.is_all:
            warnings.warn(RepeatedRoundsWarning(_nothing_new(looked.known)), stacklevel=2)
            self.n_skipped_ = looked.known
            return self
        monitor = self._monitor.copy()
        rounds, named = followed_rounds(log, monitor, before, looked, progress)
        self._learn(monitor, self._seen.after(rounds), looked.known, named)
        self._remember(log[looked.known :] if isinstance(log, BanditLog) else log, more=True)
        return self

    @property
    @in_basis
    def evidence_(self) -> dict[str, float]:
        """Log-probability of the picks that decided, by family."""
        self._fitted()
        if self._evidence is None:
            self._evidence = {one.assumption.exploration.name: one.evidence for one in self._monitor.tuned}
        return self._evidence

    @property
    @in_basis
    def misfit_(self) -> float:
        """How far off the predicted shares of picks are, beyond chance."""
        self._fitted()
        return self._monitor.follower.misfit[0]

    def add_features(self, names: Sequence[str]) -> Self:
        """Have features more, after the others, that were 0 in all rounds so far."""
        self._fitted()
        if self._inner is not None:
            raise InputError("curves and products know no features that come later: fit the log again")
        if self.policy_.feature_names is None:
            raise InputError("the features have no names: it is not known which of them are new")
        monitor, kept = self._monitor.copy(), Encoding.of(self.policy_)
        monitor.grow(len(names))
        grown = Encoding((*kept.feature_names, *names), kept.categories)
        return self._learn(monitor, self._seen, self.n_skipped_, grown)

    @in_basis
    def predict(self, log: BanditLog) -> Index:
        """Position of the arm that the learner, as it explores, is most likely to pick next in every round, shape (N,).

        The first of equals, as `predict_proba` has them; `policy_.choose` leaves exploration out.
        """
        return ragged.argmax(self._next_probabilities(as_log(log, "predict")), log.offsets)

    @in_basis
    def score(self, log: BanditLog) -> float:
        """Fraction of the log's picks that `predict` gives."""
        return float(np.mean(as_log(log, "score").may_be(self.predict(log))))

    def propensities(self, log: BanditLog, ahead: bool = True) -> Vector:  # noqa: FBT001, FBT002  the contract's form
        """With what probability the learner picked each arm in its round, one per row of the log; none is 0.

        By the family with the most evidence, proved or not; `DynamicImitation` needs none. From the picks before the
        round alone: the family is decided again whenever the rounds have doubled, until 2,000 have decided. With
        `ahead=False` the family and its constants come from all rounds that decide, and the estimate from the picks
        before the round. Give the log that was fitted, or one that begins with it; other rounds are taken to continue
        after those that were fitted. The observer stays as it is.
        """
        self._fitted()
        if self._inner is not None:
            return self._propensities_in_basis(log, ahead=ahead)
        log = self._in_order(as_log(log, "propensities"))
        if not log.n_rounds:
            return np.empty(0)
        filled = self._filled(log)
        if filled is not None:
            return self.propensities(filled[0], ahead)[filled[1]]
        if ahead and log.possible is not None:
            return super().propensities(log)
        drawn = self._average_own(log, lambda one, known: one.propensities(known, ahead))
        if drawn is not None:
            return drawn
        own = self._is_own(log)
        if ahead:
            return self.predicted_ahead(log) if own else self._monitor.copy().watch_ahead(log)
        found = np.empty(int(log.offsets[-1]))
        follower = self._monitor.fresh_follower() if own else deepcopy(self._monitor.follower)
        follower.follow(log, arms=found)
        return found

    def _is_own(self, log: BanditLog) -> bool:
        """Whether the log begins with the rounds that were followed; of a state that was loaded, by its record."""
        if self._fitted_rounds is not None or not self._seen.logs:
            return super()._is_own(log)
        before = None if self.policy_.feature_names is None else Encoding.of(self.policy_)
        return look(log, before, self._seen).known > 0

    def predicted_ahead(self, log: BanditLog) -> Vector:
        """What `fit(log).propensities(log)` gives, without the fit; the observer stays as it is."""
        if not isinstance(as_score(self.score_model), Linear):
            return self._ahead_in_basis(as_log(log))
        if as_log(log).possible is not None:
            return super().predicted_ahead(log)
        return self._fresh(log).watch_ahead(log)

    @in_basis
    def _next_probabilities(self, log: BanditLog) -> Vector:
        """Of the learner as it explores."""
        if self._drawn is not None:
            return self._average(log, lambda one, these: one._next_probabilities(these))  # noqa: SLF001  of its own class
        self._fitted()
        places = self.policy_.positions(log)
        source = self._model_free() if self.exploration_ is None else self._monitor.follower
        blocks = ragged.blocks(log.offsets, log.n_features)
        shares = ordered_map(lambda block: source.next_probabilities(log[block[0] : block[1]], places), blocks)
        return np.concatenate([np.empty(0), *shares])

    @in_basis
    def summary(self, level: float = 0.95, *, families: bool = True) -> TrackingSummary:
        """The answers in figures and in words; print it, or take `to_dict()`.

        Without `families` their comparison is left out where there are too few rounds to prove one, as it takes most of
        the time there.
        """
        self._fitted()
        compared = families or self._monitor.compares
        length = float(np.linalg.norm(self.theta_))
        direction = self.theta_ / length if length else self.theta_
        errors = np.sqrt(np.maximum(np.diag(direction_covariance(self.theta_, self.covariance_)), 0.0))
        errors[~self._identified] = np.nan
        names = feature_labels(self.policy_.feature_names, len(direction))
        return TrackingSummary(
            coefficients=coefficients(names, direction, errors, level),
            level=level,
            n_rounds=self.n_rounds_,
            decided_on=self._monitor.decided_on,
            families=families_of(self._monitor) if compared else (),
            named=self.exploration_ is not None,
            preferring=self._monitor.preferring,
            verdict=self._monitor.verdict,
            fits=self.fits_,
            misfit=self.misfit_ if compared else np.nan,
            foreseen=self._monitor.follower.foreseen if compared else self._monitor.foreseen,
            settled_round=self.settled_round_,
            n_checkpoints=len(self.path_.rounds),
            scale=length,
            units=None if self.units_ is None else tuple(self.units_.tolist()),
            warnings=self.warnings_,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that `partial_fit` needs as JSON; the log itself is not in it once 2,000 rounds were seen.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from onlooker import Environment, LinUCB, simulate
        >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=2500).log
        >>> with TemporaryDirectory() as folder:
        ...     TrackingObserver().fit(log[:2200]).save(f"{folder}/state.json")
        ...     later = TrackingObserver.load(f"{folder}/state.json").partial_fit(log[2200:])
        >>> bool((later.theta_ == TrackingObserver().fit(log).theta_).all())
        True
        """
        self._fitted()
        if self._inner is not None:
            raise InputError("a state cannot hold curves or products: fit the log again when it grows")
        self._check_picks_seen()
        check_work(len(self.theta_), STATE)
        try:
            document = self._document()
            text = sealed(document)
            # What would not load, or as something else, does not replace a good state.
            kept = TrackingObserver._of(json.loads(text))
            if kept._document() != document:  # noqa: SLF001  of its own class
                raise ValueError("it would load as another")
        except _DAMAGED as error:
            raise InputError(f"{shown(path)}: the state cannot be kept ({one_line(error)}): fit again") from error
        write_text(path, text)

    def _document(self) -> dict[str, Any]:
        names, categories = self.policy_.feature_names, self.policy_.categories
        return {
            "schema": SCHEMA,
            "feature_names": None if names is None else list(names),
            "categories": None if categories is None else {name: list(levels) for name, levels in categories.items()},
            **({} if self.policy_.crossing is None else crossing_document(self.policy_.crossing)),
            "automatic": self.exploration == "auto",
            "monitor": self._monitor.to_dict(),
            "seen": self._seen.to_dict(),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TrackingObserver:
        """Give back an observer that `save` wrote. Nothing in the file is run; one that was changed is refused."""
        document = read_document(path, [SCHEMA, FIRST_SCHEMA], "tracking state", writer="TrackingObserver.save")
        try:
            return cls._of(document)
        except _DAMAGED as error:
            reason = one_line(error, 200)
            raise InputError(
                f"{shown(path)}: is damaged ({reason}), it does not make up a state: save it again, or begin a new one"
            ) from error

    @classmethod
    def _of(cls, document: dict[str, Any]) -> TrackingObserver:
        if document["schema"] == SCHEMA:
            check_seal(document)
        elif "digest" in document or "seen" in document:
            raise ValueError("it was not written by release 0.1, as its schema says")
        with within("monitor"):
            monitor = Monitor.from_dict(document["monitor"])
        with within("seen"):
            is_first = document["schema"] == FIRST_SCHEMA
            seen = Seen(unknown=monitor.follower.n_rounds) if is_first else Seen.from_dict(document["seen"])
        if seen.n_rounds != monitor.follower.n_rounds:
            raise ValueError(f"{monitor.follower.n_rounds} rounds were followed, but {seen.n_rounds} recorded")
        if document["automatic"] is not all(isinstance(one, str) for one in monitor.families):
            raise ValueError("other families were compared than was asked for")
        observer = cls(
            exploration="auto" if document["automatic"] else monitor.families[0],
            ridge=monitor.ridge,
            checkpoints=monitor.checkpoints,
        )
        with warnings.catch_warnings():
            # They were given when the state was saved, and are in `warnings_`.
            warnings.simplefilter("ignore", OnlookerWarning)
            names, categories, crossing = document["feature_names"], document["categories"], crossing_of(document)
            # As a policy has them: names and levels are checked.
            known = LinearPolicy(np.zeros(monitor.n_features), names, categories, crossing)
            observer._crossed = None if crossing is None else (known.categories, crossing)
            named = None if names is None or crossing is not None else Encoding.of(known)
            return observer._learn(monitor, seen, named=named)

    def _fresh(self, log: BanditLog | Parts) -> Monitor:
        automatic = isinstance(self.exploration, str) and self.exploration == "auto"
        if not (automatic or isinstance(self.exploration, Exploration)):
            known = ", ".join(f"{name}(...)" for name in FAMILIES)
            raise InputError(f"exploration is {self.exploration!r}: use 'auto', or one of {known}")
        if not isinstance(log, Parts) and not as_narrow(log, "tracking").n_rounds:
            raise InputError("the log has no rounds: there is nothing to follow")
        if getattr(log, "is_sparse", False):
            check_narrow(log.n_features, "tracking")
        check_room(log, FOLLOWING)
        return Monitor(
            families=list(FAMILIES) if automatic else [self.exploration],
            ridge=as_number(self.ridge, "ridge", least=1e-9, most=1e9),
            n_features=log.n_features,
            checkpoints=as_checkpoints(self.checkpoints),
        )

    def _learn(self, monitor: Monitor, seen: Seen, n_skipped: int = 0, named: Encoding | None = None) -> Self:
        """Take over what was found: all of it or, should anything fail on the way, nothing."""
        before = dict(self.__dict__)
        try:
            self._monitor, self._seen = monitor, seen
            self.n_skipped_, self.n_unknown_ = n_skipped, seen.unknown
            self._take(monitor, named)
            self._warn(list(self._findings(monitor)), stacklevel=3)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _policy(self, theta: Vector, named: Encoding | None) -> LinearPolicy:
        """The policy with these weights."""
        if self._crossed is not None:
            return LinearPolicy(theta, None, *self._crossed)
        return LinearPolicy(theta, *(() if named is None else (named.feature_names, named.categories)))

    def _redundant(self, n_features: int) -> Matrix | None:
        """Projection on what the weights of all arms have in common; None unless every arm has weights of its own."""
        centring = None if self._crossed is None else self._crossed[1].centring
        return None if centring is None else np.eye(n_features) - centring

    def _check_arms(self, log: BanditLog | Parts) -> None:
        """Refuse a log whose arms or context are not those of the rounds before, in their order."""
        places = self.policy_.positions(log)
        if len(places) != len(self.theta_) or (places != np.arange(len(places))).any():
            raise InputError(
                "the log has its arms or the features of its context in another order than the rounds before, or lacks "
                "some: make it with arms= and feature_names= those of the first"
            )

    def _take(self, monitor: Monitor, named: Encoding | None) -> None:
        self._evidence = None
        redundant = self._redundant(monitor.n_features)
        constant, tangled = monitor.identification.flags(redundant)
        self._identified = ~(constant | tangled)
        self.n_rounds_ = monitor.n_rounds
        self.n_choices_ = monitor.n_choices
        proved = monitor.is_proved
        misfit, error = monitor.follower.misfit if proved else (0.0, 0.0)
        self.fits_ = proved and misfit <= max(MISFIT, 4 * error)
        proved = proved and (monitor.contest is None or self.fits_)
        self.exploration_ = monitor.best.assumption.exploration if proved else None
        if proved:
            follower = monitor.follower
            theta, path, end = follower.theta, follower.path, follower.here()
            self.covariance_, self.units_ = follower.covariance, follower.own_units
        else:
            contest = self._model_free()
            theta, path, end = contest.theta, contest.path, contest.here()
            self.covariance_, self.units_ = contest.covariance, None
        if monitor.uniform > NO_PREFERENCE:
            # Whatever the weights are, picks that look uniform do not show it.
            theta = np.zeros_like(theta)
        if redundant is not None:
            # Weights of each arm are differences to the mean over arms: what all arms share, no pick shows.
            centre = np.eye(monitor.n_features) - redundant
            theta, self.covariance_ = centre @ theta, centre @ self.covariance_ @ centre
        steps = path if path and path[-1].n_rounds == end.n_rounds else [*path, end]
        self.policy_ = self._policy(np.where(constant, 0.0, theta), named)
        self.path_ = Path.of(steps)
        self.settled_round_ = settled_round(steps, monitor.follower.own_units) if proved else None

    def _model_free(self) -> Contest:
        """The model-free observer beside the families; there is one where the exploration was not given."""
        assert self._monitor.contest is not None, "a given exploration is not proved"
        return self._monitor.contest

    def _findings(self, monitor: Monitor) -> Iterator[OnlookerWarning]:
        d = monitor.n_features
        alone = monitor.n_rounds - monitor.n_choices - self.n_lost_
        if alone:
            yield OneArmRoundsWarning(
                f"in {counted(alone, 'round')} a single arm was offered, so there was no choice. "
                "The learner may still have learned there; no action is needed"
            )
        names = feature_labels(self.policy_.feature_names, d)
        yield from about_collinearity(*monitor.identification.flags(self._redundant(d)), names)
        if monitor.n_choices < 2 * d:
            yield TooFewRoundsWarning(
                f"{monitor.n_choices} rounds with a choice for {d} features are too few: the intervals are wide and "
                "the kind of exploration is a guess. Keep more rounds or fewer features"
            )
        if monitor.uniform > NO_PREFERENCE:
            yield NoPreferenceWarning(
                f"no weights for the features explain the picks of the first {monitor.decided_on} rounds "
                f"(p = {monitor.uniform:.2g}): there is nothing to track. Do not interpret the weights as preferences; "
                "more rounds may help"
            )
        elif self.exploration_ is None and not monitor.compares:
            return
        elif self.exploration_ is None:
            yield NoFamilyFitsWarning(
                f"{unproved(monitor.verdict)}. The weights are those of the model-free observer (DynamicImitation)"
            )
        elif not self.fits_:
            yield NoFamilyFitsWarning(
                f"predicted and observed shares of picks differ by {self.misfit_:.3f} on average, beyond chance: the "
                "assumed exploration does not fit this learner. Use DynamicImitation instead"
            )


def _crossed(log: BanditLog | Parts) -> tuple[Categories | None, Crossing] | None:
    """Categories of the context and what each weight belongs to, where features are made of contexts and arms."""
    crossing = getattr(log, "crossing", None)
    return None if crossing is None else (log.categories, crossing)


def _matrices(monitor: Monitor) -> int:
    """How many of d x d following takes at its peak."""
    more = 0 if monitor.contest is None else CONTEST
    return FOLLOWING + FAMILY * (min(n_threads(), len(monitor.families)) - 1) + more


_DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What goes wrong where a state is not what `save` writes."""


def _of_0_1(unknown: int) -> str:
    return (
        f"the state is of release 0.1, which kept no record of its {counted(unknown, 'round')}. Give it new rounds "
        "only: any that it has followed before would count twice"
    )


def _nothing_new(known: int) -> str:
    rounds = "the one round" if known == 1 else f"all {known} rounds"
    return (
        f"nothing is new: {rounds} of the log were followed before, and are skipped. If they are new rounds that "
        "happen to be the same, pass repeated='follow'"
    )
