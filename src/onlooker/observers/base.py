"""What all observers share: parameters in scikit-learn's form, predictions from the policy they found, summaries."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_level, counted
from onlooker.base.errors import (
    FittedRoundsWarning,
    InputError,
    NotFittedError,
    OnlookerWarning,
    PicksDrawnWarning,
    warn,
)
from onlooker.base.notebook import InHtml, Pictured, as_frame
from onlooker.base.numerics import normal_reach
from onlooker.base.text import text_table
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.score_models import LINEAR, Band, Basis
from onlooker.imitation.scores.choice import basis_of
from onlooker.logs.crossing import Crossing
from onlooker.logs.layouts import columns
from onlooker.logs.log import BanditLog, as_log, feature_labels
from onlooker.logs.partial import Marks
from onlooker.logs.parts import Parts
from onlooker.logs.policy import LinearPolicy, Named, Policy, Scoring, as_linear
from onlooker.observers.ahead import Predict, calibrated, growing_fits, stages
from onlooker.observers.fitted_rounds import FittedRounds

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
            warn(_NOT_NEXT, FittedRoundsWarning)
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
        from onlooker.logs.gaps import lost_before, with_stand_ins

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
        from onlooker.logs.gaps import with_stand_ins

        more = np.zeros(log.n_rounds - len(self._lost), dtype=np.int64)
        filled, seen = with_stand_ins(log, np.concatenate([self._lost, more]))
        return (filled, np.repeat(seen, filled.n_arms)) if self._place_of(filled) == 0 else None

    def _fit_drawn(
        self, log: BanditLog, fit: Callable[[Self, BanditLog], Self], kind: Callable[[Self], object]
    ) -> Self:
        """Fit to picks that are drawn where only a set is known, and combine what agrees in kind by Rubin's rules."""
        from onlooker.logs.drawn import with_picks
        from onlooker.observers.completion import completed_picks, most_common, rubin

        parameters, lost = self.get_params(deep=False), self._lost
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OnlookerWarning)
            fits = [(fit(type(self)(**parameters), with_picks(log, picks)), picks) for picks in completed_picks(log)]
        alike = [one for one, _ in most_common(fits, key=lambda pair: kind(pair[0]))]
        spreads = [getattr(one, "covariance_") for one in alike]  # noqa: B009  only observers with intervals have it
        theta, covariance = rubin([one.theta_ for one in alike], spreads)
        self.__dict__.update(alike[0].__dict__)
        self._drawn = tuple(fits)
        self._lost, self._combined = lost, (theta, covariance)
        if "covariance_" in self.__dict__:
            self.__dict__["covariance_"] = covariance
        first = as_linear(alike[0].policy_, "theta_")
        self.policy_ = type(first)(theta, first.feature_names, first.categories, first.crossing)
        self._remember(log)
        text = (
            f"in {log.n_sets:,} of {log.n_rounds:,} rounds only a set of arms is known that holds the pick: picks are "
            f"drawn from the sets {len(fits)} times, and what the sets leave open widens intervals. No action is needed"
        )
        found = [PicksDrawnWarning(text)]
        if len(alike) < len(fits):
            found.append(
                PicksDrawnWarning(
                    f"the draws disagree on how the learner explores: {len(alike)} of {len(fits)} agree with this. "
                    "Get smaller sets, or some picks"
                )
            )
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
        from onlooker.logs.gaps import with_stand_ins

        more = np.zeros(log.n_rounds - len(self._lost), dtype=np.int64)
        return self._ahead_in_basis(with_stand_ins(log, np.concatenate([self._lost, more]))[0])[filled[1]]

    def _ahead_in_basis(self, log: BanditLog, times: Any = None) -> Vector:
        """Each round predicted from those before, by which the basis is chosen too: again as the log grows by half."""
        parameters, log = self.get_params(deep=False), log.written_out()
        linear, basis = type(self)(**{**parameters, "score": LINEAR}), None
        found = np.empty(int(log.offsets[-1]))
        for start, stop in stages(log.n_rounds):
            if start:
                basis = basis_of(log[:start], parameters["score"])
            part = log[:stop] if basis is None else basis.basis(log[:stop])
            options = {} if times is None else {"times": np.asarray(times)[:stop]}
            rows = slice(int(log.offsets[start]), int(log.offsets[stop]))
            found[rows] = linear.predicted_ahead(part, **options)[rows]
        return found

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
        from onlooker.logs.drawn import with_picks

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


_NOT_NEXT = (
    "these rounds were fitted, and predict_proba says how the learner would pick now, after all of them. For how it "
    "picked in each of them use propensities(log)"
)

NO_INTERVALS = "none"
"""In the place of a covariance: the loss has no intervals of the usual kind."""


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """What the learner gives for one unit of a feature."""

    name: str
    """The feature's name."""
    estimate: float
    """Weight in theta."""
    standard_error: float
    """NaN where the weight is not identified."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    z: float
    """Estimate divided by its standard error; NaN where that is 0 or not known."""


def coefficients(names: Sequence[str], estimates: Vector, errors: Vector, level: float) -> tuple[Coefficient, ...]:
    """Estimates with the intervals that their standard errors give them.

    Examples
    --------
    >>> import numpy as np
    >>> (price,) = coefficients(["price"], np.array([1.0]), np.array([0.5]), level=0.95)
    >>> round(price.low, 2), round(price.high, 2), price.z
    (0.02, 1.98, 2.0)
    """
    reach = normal_reach(as_level(level))
    return tuple(
        Coefficient(
            name=name,
            estimate=value,
            standard_error=error,
            low=value - reach * error,
            high=value + reach * error,
            z=value / error if error else math.nan,
        )
        for name, value, error in zip(names, estimates.tolist(), errors.tolist(), strict=True)
    )


def coefficients_table(found: Sequence[Coefficient], form: str, estimate: str, interval: str) -> list[str]:
    """Lines of text, one a coefficient below the headings; `form` is how numbers are written."""
    rows = [["feature", estimate, "std. error", "z", interval]]
    for c in found:
        interval = f"[{c.low:{form}}, {c.high:{form}}]"
        rows.append([c.name, f"{c.estimate:{form}}", f"{c.standard_error:{form}}", f"{c.z:.2f}", interval])
    return text_table(rows, "< >12 >12 >8   <")


class OfCoefficients(Pictured, InHtml):
    """What has weights with intervals."""

    coefficients: tuple[Coefficient, ...]

    def to_frame(self) -> Any:
        """A table with a row for every weight: of pandas where that is installed, else of pyarrow."""
        fields = {"feature": "name"} | {n: n for n in ("estimate", "standard_error", "low", "high", "z")}
        return as_frame({head: [getattr(one, of) for one in self.coefficients] for head, of in fields.items()})


@dataclass(frozen=True, kw_only=True, repr=False)
class WeightSummary(OfCoefficients):
    """The weights that an observer found; printing it shows the table."""

    observer: str
    """Which, in words."""
    coefficients: tuple[Coefficient, ...]
    """In the order of the features."""
    level: float
    """Coverage that the intervals aim for, where there are any."""
    warnings: tuple[str, ...]
    """What to know before reading on."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        known = any(math.isfinite(one.standard_error) for one in self.coefficients)
        table = coefficients_table(self.coefficients, ".6g", "estimate", f"{100 * self.level:g}% interval")
        if not known:
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in self.coefficients)]
            table = text_table(rows, "< >12")
        return "\n".join([self.observer, *table, *(f"warning: {text}" for text in self.warnings)])


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary(OfCoefficients):
    """A fit in figures; printing it shows the table.

    Estimates are changes in log-odds for one unit of a feature; see `SuffixImitation` for what the intervals cover.
    """

    coefficients: tuple[Coefficient, ...]
    """In the order of the features."""
    level: float
    """Coverage that the intervals aim for."""
    covariance: str
    """How the standard errors were made; `"none"` with the 0-1 loss, which has none."""
    n_rounds: int
    """Rounds with a choice that were imitated."""
    burn_in: int
    """Rounds discarded before them."""
    log_likelihood: float
    """Of the picks under theta; this and the next three are NaN with the 0-1 loss, which finds a direction only."""
    null_log_likelihood: float
    """Of the picks under uniform choice."""
    likelihood_ratio: float
    """Twice the difference of the two."""
    p_value: float
    """Chance of such a ratio if nothing were preferred."""
    agreement: float
    """Fraction of the imitated rounds where theta's best arm was picked."""
    shrinkage: float
    """By about how much regularisation shrinks the weights; NaN with the 0-1 loss."""
    warnings: tuple[str, ...]
    """What to know before reading on."""
    crossing: Crossing | None = None
    """Which arm each weight belongs to, where every arm has its own."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        crossing = found.pop("crossing")
        if crossing is not None and crossing["arms"] is not None:
            found["arms"] = [str(arm) for arm in crossing["arms"]]
            found["context_features"] = list(crossing["context"])
        return found

    def __repr__(self) -> str:
        percent = f"{100 * self.level:g}%"
        rounds = f"{self.n_rounds} rounds imitated after a burn-in of {self.burn_in}"
        agreement = f"agreement with them {self.agreement:.3f}"
        if self.crossing is not None and self.crossing.arms is not None and not math.isnan(self.log_likelihood):
            return "\n".join([f"{rounds}; {agreement}", *self._by_arm(), *(f"warning: {w}" for w in self.warnings)])
        if self.covariance == NO_INTERVALS and not math.isnan(self.log_likelihood):
            most = sorted(self.coefficients, key=lambda one: -abs(one.estimate))[:MOST_SHOWN]
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in most)]
            lines = [f"{rounds}; {agreement}", *text_table(rows, "< >12")]
            left = len(self.coefficients) - len(most)
            lines += [f"and {left} smaller weights"] if left > 0 else []
            return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
        if self.covariance == NO_INTERVALS:
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in self.coefficients)]
            lines = [f"{rounds}; {agreement}", *text_table(rows, "< >12")]
            lines.append(
                "the 0-1 loss identifies the direction of theta only and has no intervals of the usual kind: its "
                "minimiser converges at the cube root of the rounds and is not normal; the softmax loss has intervals"
            )
            return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
        likelihood = f"log-likelihood {self.log_likelihood:.4f} (uniform {self.null_log_likelihood:.4f})"
        heading = f"{percent} interval ({self.covariance})"
        table = coefficients_table(self.coefficients, ".6g", "estimate", heading)
        lines = [f"{rounds}; {agreement}; {likelihood}", *table]
        if self._shrinks:
            lines.append(about_shrinkage(self.shrinkage))
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    @property
    def _shrinks(self) -> bool:
        """Whether intervals are there, and noticeably those of shrunken weights."""
        return self.shrinkage > 0.05 and any(math.isfinite(one.standard_error) for one in self.coefficients)

    def _by_arm(self) -> list[str]:
        """Weights with their standard errors, an arm a row."""
        assert self.crossing is not None
        assert self.crossing.arms is not None
        own, names = len(self.crossing.own), self.crossing.context or ("weight",)
        found, arms = self.coefficients[own:], [str(arm) for arm in self.crossing.arms]
        lines = text_table([["feature", "estimate"], *([c.name, _cell(c)] for c in self.coefficients[:own])], "< >18")
        lines = lines if own else []
        for first in range(0, len(names), COLUMNS_SHOWN):
            places = range(first, min(first + COLUMNS_SHOWN, len(names)))
            rows = [["arm", *(names[j] for j in places)]]
            rows += [
                [arm, *(_cell(found[k * len(names) + j]) for j in places)] for k, arm in enumerate(arms[:MOST_SHOWN])
            ]
            lines += text_table(rows, " ".join(["<", *[">18"] * len(places)]))
        if len(arms) > MOST_SHOWN:
            lines.append(f"and {len(arms) - MOST_SHOWN} more arms")
        errors = "" if self.covariance == NO_INTERVALS else f" with standard errors ({self.covariance})"
        lines.append(f"weights{errors} are differences to the mean over the arms that are offered together")
        if self._shrinks:
            lines.append(about_shrinkage(self.shrinkage))
        return lines


MOST_SHOWN = 40
"""Arms, or weights without intervals, that a printed summary shows."""

COLUMNS_SHOWN = 6
"""Features of the context side by side."""


def _cell(found: Coefficient) -> str:
    error = "" if math.isnan(found.standard_error) else f" ({found.standard_error:.3g})"
    return f"{found.estimate:.4g}{error}"


def about_shrinkage(shrinkage: float) -> str:
    """What to know where regularisation shrinks the weights noticeably.

    Examples
    --------
    >>> about_shrinkage(0.3)[:52]
    'regularisation shrinks the weights by about 30%, and'
    """
    return (
        f"regularisation shrinks the weights by about {shrinkage:.0%}, and the intervals are for the shrunken weights. "
        "Compare directions only, or turn it off (l2=0, on the command line --l2 0)"
    )
