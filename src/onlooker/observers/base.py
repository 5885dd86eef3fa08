"""What all observers share: parameters in scikit-learn's form, and predictions from the policy they found."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from onlooker.base.errors import InputError, NotFittedError, OnlookerWarning
from onlooker.base.types import Index, Vector
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.policy import Policy, as_linear


class Observer:
    """Base of the observers: `fit` sets `policy_`, everything else follows from it.

    A subclass names its parameters in a keyword-only `__init__`, stores each under its own name, and learns in `fit`.
    Only observers with intervals have `summary()`: `SuffixImitation` and `TrackingObserver`. Observers can be pickled
    and copied; scikit-learn's `cross_val_score(observer, log, cv=TimeSeriesSplit())` scores them on later rounds.
    """

    _stored: ClassVar[Mapping[str, str]] = {}
    """Attributes of parameters that cannot have their own name, as a method has it."""

    policy_: Policy
    """The policy that was recovered."""
    warnings_: tuple[str, ...] = ()
    """What to know before using it; empty where there is nothing."""

    def fit(self, log: BanditLog) -> Self:
        """Recover the learner's policy from its log."""
        raise NotImplementedError

    @property
    def theta_(self) -> Vector:
        """Weight of each feature, shape (d,); only linear policies have them."""
        return as_linear(self._fitted(), "theta_").theta

    def predict(self, log: BanditLog) -> Index:
        """Position of the arm that the recovered policy chooses in every round, shape (N,)."""
        return self._fitted().choose(as_log(log, "predict"))

    def predict_proba(self, log: BanditLog) -> Vector:
        """Softmax probability of every offered arm, one per row of `log.features`."""
        return self._fitted().probabilities(as_log(log, "predict_proba"))

    def score(self, log: BanditLog) -> float:
        """Fraction of the log's picks that the recovered policy makes too."""
        return float(np.mean(self.predict(as_log(log, "score")) == log.chosen))

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
