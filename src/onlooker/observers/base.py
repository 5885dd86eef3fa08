"""What all observers share: scikit-learn's parameters, predictions from the policy, rounds that are recognised."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import FittedRoundsWarning, InputError, NotFittedError, OnlookerWarning, warn
from onlooker.base.notebook import InHtml, Pictured
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.imitation.choice_model import LINEAR, Band, Basis
from onlooker.imitation.scores.choice import basis_of
from onlooker.logs.drawn import with_picks
from onlooker.logs.gaps import lost_before, with_stand_ins
from onlooker.logs.layouts import Layout, columns
from onlooker.logs.log import BanditLog, as_log, feature_labels
from onlooker.logs.partial import Marks
from onlooker.logs.parts import Parts
from onlooker.logs.policy import LinearPolicy, Named, Policy, Scoring, as_linear
from onlooker.observers.ahead import Predict, ahead_in_basis, calibrated, growing_fits
from onlooker.observers.summaries import WeightSummary, coefficients

Method = TypeVar("Method", bound=Callable[..., Any])


def in_basis(method: Method) -> Method:
    """Have a method, or what a property finds, be that of the observer of a basis, with logs in it."""

    @wraps(method)
    def run(self: Observer, *arguments: Any, **options: Any) -> Any:
        if self._inner is None:
            return method(self, *arguments, **options)
        inner, basis = self._inner
        logs = [basis.basis(self._in_order(one)) if isinstance(one, BanditLog) else one for one in arguments]
        found = getattr(inner, method.__name__)
        return found(*logs, **options) if callable(found) else found

    return cast("Method", run)


class Observer(Pictured, InHtml):
    """Base of the observers: `fit` sets `policy_`, everything else follows from it.

    A subclass names its parameters in a keyword-only `__init__`, stores each under its own name, and learns in `fit`.
    `summary()` has intervals where the observer does: `SuffixImitation`, `TrackingObserver` and `DynamicImitation`.
    Notebooks show a fitted observer as a table, and `plot()` draws what it found. Observers can be pickled and copied;
    scikit-learn's `cross_val_score(observer, log, cv=TimeSeriesSplit())` scores them on later rounds.
    """

    _stored: ClassVar[Mapping[str, str]] = {}
    """Attributes of parameters that cannot have their own name, as a method has it."""

    policy_: Policy
    """The policy that was recovered."""
    warnings_: tuple[str, ...] = ()
    """What to know before using it; empty where there is nothing."""
    _fitted_rounds: FittedRounds | None = None
    """The rounds that it was fitted on; None where they were not in memory."""
    _drawn: tuple[tuple[Self, Index], ...] | None = None
    """Fits to drawn picks, where only sets are known, with the picks."""
    _combined: tuple[Vector, Matrix] | None = None
    """Their combined estimate and covariance."""
    _inner: tuple[Self, Basis] | None = None
    """Of a score that is not linear, the observer that follows its basis, and the basis."""
    _lost: Index | None = None
    """How many rounds were lost before each of them, where `gaps` said so."""

    def fit(self, log: BanditLog) -> Self:
        """Recover the learner's policy from its log."""
        raise NotImplementedError

    @property
    def theta_(self) -> Vector:
        """Weight of each feature, shape (d,); only linear policies have them."""
        return as_linear(self._fitted(), "theta_").theta

    @in_basis
    def predict(self, log: BanditLog) -> Index:
        """Position of the arm that the recovered policy chooses in every round, shape (N,)."""
        return self._fitted().choose(as_log(log, "predict"))

    @in_basis
    def predict_proba(self, log: BanditLog) -> Vector:
        """Probability of every offered arm as the learner's next pick, one per row of `log.features`.

        "Next" is after all rounds that were fitted. For these rounds themselves a `FittedRoundsWarning` is given:
        `propensities(log)` says how the learner picked in each of them.
        """
        self._fitted()
        if self._place_of(as_log(log, "predict_proba")) is not None:
            text = (
                "these rounds were fitted, and predict_proba says how the learner would pick now, after all of them. "
                "For how it picked in each of them use propensities(log)"
            )
            warn(text, FittedRoundsWarning)
        return self._next_probabilities(log)

    def propensities(self, log: BanditLog, ahead: bool = True) -> Vector:  # noqa: FBT001, FBT002  the contract's form
        """With what probability the learner picked each arm in its round, one per row of the log; none is 0.

        From the picks before the round alone; with `ahead=False` from later picks too. Give the log that was fitted, or
        one that begins with it: the observer is fitted again to growing parts of it, each half as long again as the one
        before, and each fit predicts the rounds up to the next. How sharp these predictions are, and the share of
        random picks, is estimated from earlier rounds. A log that was not fitted is taken to continue after the rounds
        that were, and is predicted by the policy at their end.

        Examples
        --------
        >>> from onlooker import Boltzmann, Environment, SuffixImitation, simulate
        >>> log = simulate(Environment(5, 20), Boltzmann(0.2), n_rounds=1000).log
        >>> observer = SuffixImitation().fit(log)
        >>> probabilities = observer.propensities(log)
        >>> probabilities.min() > 0, float(np.add.reduceat(probabilities, log.offsets[:-1]).max().round(9))
        (np.True_, 1.0)
        """
        self._fitted()
        if not as_log(log, "propensities").n_rounds:
            return np.empty(0)
        base = self._growing(log, ahead=ahead) if self._is_own(log) else self._next_probabilities(log)
        return calibrated(log, base, ahead=ahead)

    def predicted_ahead(self, log: BanditLog) -> Vector:
        """What `fit(log).propensities(log)` gives, without the fit; the observer stays as it is."""
        return calibrated(log, self._growing(log, ahead=True)) if as_log(log).n_rounds else np.empty(0)

    def _growing(self, log: BanditLog, *, ahead: bool) -> Vector:
        base = np.empty(int(log.offsets[-1]))
        growing_fits(log, self._fit_again, base, ahead=ahead)
        return base

    def _next_probabilities(self, log: BanditLog) -> Vector:
        """What `predict_proba` gives, for any rounds."""
        return self._fitted().probabilities(log)

    def _fit_again(self, log: BanditLog) -> Predict:
        """Another observer with the same parameters, fitted to these rounds."""
        return type(self)(**self.get_params(deep=False)).fit(log)._next_probabilities  # noqa: SLF001  of its own class

    def _remember(self, log: BanditLog | Parts, *, more: bool = False) -> None:
        """Keep what the rounds of a fit are recognised by; `more` adds them to those before."""
        rounds = None if isinstance(log, Parts) else FittedRounds.of(log)
        if more and rounds is not None:
            rounds = None if self._fitted_rounds is None else self._fitted_rounds.then(rounds)
        self._fitted_rounds = rounds

    def _fill(self, log: BanditLog | Parts, gaps: ArrayLike | str | None) -> BanditLog | Parts:
        """The log with stand-ins for the rounds that were lost, which are remembered."""
        self._lost = None
        if gaps is None:
            return log
        self._lost = lost_before(as_log(log, "gaps"), gaps)
        return with_stand_ins(as_log(log), self._lost)[0]

    @property
    def n_lost_(self) -> int:
        """Rounds that were lost, by `gaps`: the learner is taken to have learned there from picks like those nearby."""
        return 0 if self._lost is None else int(self._lost.sum())

    def _filled(self, log: BanditLog) -> tuple[BanditLog, Marks] | None:
        """The log with the stand-ins that it was fitted with, and which of its rows are its own; else None."""
        if self._lost is None or log.n_rounds < len(self._lost):
            return None
        more = np.zeros(log.n_rounds - len(self._lost), dtype=np.int64)
        filled, seen = with_stand_ins(log, np.concatenate([self._lost, more]))
        return (filled, np.repeat(seen, filled.n_arms)) if self._place_of(filled) == 0 else None

    def _fit_drawn(
        self, log: BanditLog, fit: Callable[[Self, BanditLog], Self], kind: Callable[[Self], object]
    ) -> Self:
        """Fit to picks that are drawn where only a set is known, and combine what agrees in kind by Rubin's rules."""
        from onlooker.observers.completion import fit_drawn

        lost = self._lost
        found = fit_drawn(self, log, fit, kind)
        self._lost = lost
        self._remember(log)
        before = [text for text in self.warnings_ if lost is None or "a single arm was offered" not in text]
        self._warn(found, stacklevel=3)
        self.warnings_ = (*before, *self.warnings_)
        return self

    def _fit_in_basis(self, log: BanditLog | Parts, score: object, **options: Any) -> Self:
        """Follow the columns of a score that is linear in a basis, which is chosen on the second half of the log."""
        known = as_log(log, f"score={score!r}").written_out()
        basis = basis_of(known, score)
        if basis.positive is not None and basis.positive.any():
            raise InputError("weights that are followed know no bounds: leave monotone out")
        inner = type(self)(**{**self.get_params(deep=False), "score": LINEAR}).fit(basis.basis(known), **options)
        return self._adopt(inner, basis, known)

    def _adopt(self, inner: Self, basis: Basis, log: Named) -> Self:
        """Have what the observer of a basis found, with a policy for logs as they are."""
        self.__dict__.update({name: value for name, value in vars(inner).items() if name.endswith("_")})
        self._inner, self._lost, self._fitted_rounds = (inner, basis), inner._lost, None
        spread: Matrix = getattr(inner, "covariance_")  # noqa: B009  only observers with intervals follow a basis
        self.policy_ = basis.policy(inner.theta_, log, Band(inner.theta_, spread))
        return self

    def _propensities_in_basis(self, log: BanditLog, *, ahead: bool, **options: Any) -> Vector:
        """What `propensities` gives with a score that is not linear."""
        assert self._inner is not None
        inner, basis = self._inner
        log = self._in_order(as_log(log, "propensities"))
        there = basis.basis(log)
        filled = inner._filled(there)  # noqa: SLF001  of its own class
        if not ahead or (filled is None and not inner._is_own(there)):  # noqa: SLF001  of its own class
            return inner.propensities(there, ahead, **options)
        if filled is None or self._lost is None:
            return self._ahead_in_basis(log, **options)
        more = np.zeros(log.n_rounds - len(self._lost), dtype=np.int64)
        return self._ahead_in_basis(with_stand_ins(log, np.concatenate([self._lost, more]))[0])[filled[1]]

    def _ahead_in_basis(self, log: BanditLog, times: Any = None) -> Vector:
        return ahead_in_basis(self, log, times)

    def _check_picks_seen(self, log: BanditLog | Parts | None = None) -> None:
        """Refuse to go on where picks are known only to sets, here or in the rounds before."""
        if self._drawn is None and getattr(log, "possible", None) is None:
            return
        raise InputError(
            "picks that are known only to a set are drawn given all other rounds, so each new round changes what "
            "earlier ones say, and no state can hold that: fit the whole log again when it grows (`policy_.save` keeps "
            "the policy)"
        )

    def _average(self, log: BanditLog, predict: Callable[[Self, BanditLog], Vector]) -> Vector:
        """Mean over the draws of what each says of a log."""
        assert self._drawn is not None
        return np.asarray(np.mean([predict(one, log) for one, _ in self._drawn], axis=0))

    def _average_own(self, log: BanditLog, predict: Callable[[Self, BanditLog], Vector]) -> Vector | None:
        """The same of the log that was fitted, each draw with its picks; None for other logs."""
        if self._drawn is None or log.n_rounds != len(self._drawn[0][1]) or self._place_of(log) != 0:
            return None
        return np.asarray(np.mean([predict(one, with_picks(log, picks)) for one, picks in self._drawn], axis=0))

    def _in_order(self, log: BanditLog) -> BanditLog:
        """The log with its features in the order of those that were fitted; written out for a basis."""
        places = cast("Scoring", self._fitted()).positions(as_log(log))
        if self._inner is not None:
            log = log.written_out()
        if (places == np.arange(len(places))).all():
            return log
        order = np.argsort(places)
        known = log.weight_names
        names = None if known is None else [known[place] for place in order]
        return log.with_features(columns(log.features, order), names)

    def _place_of(self, log: BanditLog) -> int | None:
        return None if self._fitted_rounds is None else self._fitted_rounds.place(log)

    def _is_own(self, log: BanditLog) -> bool:
        """Whether the log begins with the rounds that were fitted, or it is not known which these were."""
        place = self._place_of(log)
        if place:
            raise InputError(
                f"the log begins with round {place} of those that were fitted: how the learner picked there depends on "
                "the rounds before, so pass the log from its first round and take what you need of the answer"
            )
        return place == 0 or self._fitted_rounds is None

    @in_basis
    def score(self, log: BanditLog) -> float:
        """Fraction of the log's picks that the recovered policy makes too; of a set, whether its pick lies in it."""
        return float(np.mean(as_log(log, "score").may_be(self.predict(log))))

    @in_basis
    def summary(self, level: float = 0.95) -> Any:
        """The weights in figures; print it, or take `to_frame()`. Observers without intervals have NaN for them.

        Examples
        --------
        >>> from onlooker import Environment, IBCB, LinUCB, simulate
        >>> observer = IBCB().fit(simulate(Environment(3, 5), LinUCB(), n_rounds=300).log)
        >>> len(observer.summary().to_frame())
        3
        """
        policy = as_linear(self._fitted(), "a summary")
        names = feature_labels(policy.feature_names, len(policy.theta))
        found = coefficients(names, policy.theta, self._standard_errors(), level)
        return WeightSummary(observer=str(self), coefficients=found, level=level, warnings=self.warnings_)

    def _standard_errors(self) -> Vector:
        """Of the weights; NaN where they are not known."""
        return np.full(len(self.theta_), np.nan)

    def _fitted(self) -> Policy:
        if not hasattr(self, "policy_"):
            raise NotFittedError(f"this {type(self).__name__} has not seen a log yet: call fit(log) first")
        return self.policy_

    def __sklearn_is_fitted__(self) -> bool:
        """Whether scikit-learn's `check_is_fitted` passes."""
        return hasattr(self, "policy_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn has to know; only it asks, so that it need not be installed otherwise."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _warn(self, found: Sequence[OnlookerWarning], *, stacklevel: int) -> None:
        """Keep what was found in `warnings_`, and warn of it as `warnings.warn` would in the place of this call."""
        self.warnings_ = tuple(str(one) for one in found)
        for one in found:
            warnings.warn(one, stacklevel=stacklevel + 1)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls).parameters.values()
        return sorted(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  scikit-learn's signature
        """Parameters by name; with `deep`, also those of a parameter that has some of its own."""
        found = {name: getattr(self, self._stored.get(name, name)) for name in self._parameter_names()}
        if deep:
            for name, value in list(found.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    found |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name."""
        for name, value in parameters.items():
            owner, _, inner = name.partition("__")
            if owner not in self._parameter_names():
                raise InputError(
                    f"{type(self).__name__} has no parameter {owner!r}: it has {', '.join(self._parameter_names())}"
                )
            if inner:
                getattr(self, self._stored.get(owner, owner)).set_params(**{inner: value})
            else:
                setattr(self, self._stored.get(owner, owner), value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = {k: v for k, v in self.get_params(deep=False).items() if v is not defaults[k].default}
        changed = [f"{k}={v!r}" for k, v in shown.items() if v != defaults[k].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __str__(self) -> str:
        if not hasattr(self, "policy_"):
            return f"{self!r}, not fitted yet"
        if not isinstance(self.policy_, LinearPolicy):
            return f"{self!r}, fitted: {self.policy_!r}"
        theta = self.policy_.theta
        names = feature_labels(self.policy_.feature_names, len(theta))
        largest = np.argsort(-np.abs(theta), kind="stable")[:3].tolist()
        shown = ", ".join(f"{names[j]} {theta[j]:.3g}" for j in largest)
        return f"{self!r}, fitted: {counted(len(theta), 'weight')}, the largest {shown}"


CHANCE = 1e-3
"""Rounds are recognised if other rounds would look like them with less than this chance."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""A product with it is one-to-one and spreads bits."""


@dataclass(frozen=True, eq=False)
class FittedRounds:
    """A number for every round, from its pick and how many arms were offered: one pass over the picks, not the offers.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.random.default_rng(0).normal(size=(200, 3, 2)), np.zeros(200, dtype=int))
    >>> fitted = FittedRounds.of(log[:150])
    >>> fitted.place(log), fitted.place(log[100:]), fitted.place(log[150:])
    (0, 100, None)
    """

    prints: NDArray[np.uint64]

    @classmethod
    def of(cls, log: BanditLog) -> FittedRounds:
        """Take the rounds of a log."""
        if log.possible is not None:
            return cls(_of_sets(log, log.possible))
        values = _pick_sums(log)
        numbers = (np.ascontiguousarray(values) + 0.0).view(np.uint64)
        return cls(numbers * _ODD + (log.chosen + 1).astype(np.uint64) * np.uint64(3) + log.n_arms.astype(np.uint64))

    def then(self, later: FittedRounds) -> FittedRounds:
        """Both, one after the other."""
        return FittedRounds(np.concatenate([self.prints, later.prints]))

    def place(self, log: BanditLog) -> int | None:
        """Where the log's rounds begin among these, as far as both go; None if they were not fitted, or may not be.

        Where many rounds are alike, as with few items and no other features, a short log is not recognised.
        """
        given, known = FittedRounds.of(log).prints, self.prints
        if not len(given) or not len(known):
            return None
        places = np.flatnonzero(known == given[0])
        for step in range(1, min(len(given), len(known))):
            if len(places) <= 1:
                break
            inside = places + step < len(known)
            places = places[~inside | (known[np.where(inside, places + step, 0)] == given[step])]
        for place in places.tolist():
            both = min(len(given), len(known) - place)
            if np.array_equal(known[place : place + both], given[:both]) and self._chance(given[:both]) < CHANCE:
                return int(place)
        return None

    def _chance(self, given: NDArray[Any]) -> float:
        """That other rounds would look like these, from how often rounds that were fitted look alike."""
        found, counts = np.unique(self.prints, return_counts=True)
        n = len(self.prints)
        repeated = 1.0 - (len(found) - 1) / n
        often = counts[np.searchsorted(found, given)]
        each = np.where(often > 1, often, min(repeated, 1.0)) / n
        return float(np.exp(min(0.0, np.log(n) + np.log(each).sum())))


def _pick_sums(log: BanditLog) -> Vector:
    """Weighted sum of the row of every pick."""
    if isinstance(log.features, Layout):
        return _row_sums(log.features[log.chosen_rows])
    from onlooker.kernels.scattered import row_sums

    return row_sums(log.features, log.chosen_rows, _weights(log.n_features))


@lru_cache(maxsize=8)
def _weights(n_features: int) -> Vector:
    return np.random.default_rng(0).random((n_features,))


def _of_sets(log: BanditLog, possible: Marks) -> NDArray[np.uint64]:
    """The same of rounds of which only a set is known that holds the pick."""
    rows, starts = _row_sums(log.features), log.offsets[:-1]
    values = np.add.reduceat(np.where(possible, rows, 0.0), starts) + 0.0
    places = (np.arange(len(rows)) - np.repeat(starts, log.n_arms) + 1).astype(np.uint64) * _ODD
    sets = np.add.reduceat(np.where(possible, places ^ (places >> np.uint64(29)), np.uint64(0)), starts)
    return np.asarray(values.view(np.uint64) * _ODD + sets * np.uint64(3) + log.n_arms.astype(np.uint64))


def _row_sums(rows: Features | Layout) -> Vector:
    """Weighted sum of every row, the same to the last bit wherever the row stands."""
    weights = _weights(rows.shape[1])
    if isinstance(rows, Layout):
        return rows @ weights
    found = np.empty(len(rows))
    step = max(1, (1 << 18) // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        found[start : start + step] = (rows[start : start + step] * weights).sum(axis=1)
    return found
