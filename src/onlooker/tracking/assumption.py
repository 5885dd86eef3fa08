"""What is assumed of a learner before its picks are looked at, and what that means for the compiled filter."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from onlooker.checks import as_number
from onlooker.tracking.exploration import FAMILIES, TS, UCB, Exploration, Lapse, Softmax

if TYPE_CHECKING:
    from onlooker.kernels.margins import Model


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """How the learner explores and learns, and what is thought of the truth before the first pick."""

    exploration: Exploration
    """How picks depart from the best estimate."""
    ridge: float
    """Of the learner: `V = ridge * I + sum of x x'`."""
    precision: float
    """Of every coordinate of theta*, one over its prior variance in units of the reward noise."""
    slip: float
    """Share of uniform picks, where `exploration` is not such a share itself."""

    @property
    def lapse(self) -> float:
        """Share of uniform picks."""
        return self.exploration.epsilon if isinstance(self.exploration, Lapse) else self.slip

    def model(self) -> Model:
        """In the terms of the compiled filter."""
        from onlooker.kernels.margins import Model

        return Model(
            width=self.exploration.alpha if isinstance(self.exploration, UCB) else 0.0,
            sampling=self.exploration.nu if isinstance(self.exploration, TS) else 0.0,
            # The variance of Gumbel noise, whose best arm is a softmax pick.
            jitter=(math.pi * self.exploration.temperature) ** 2 / 6 if isinstance(self.exploration, Softmax) else 0.0,
            lapse=self.lapse,
            shrink=self.ridge - self.precision,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "exploration": [self.exploration.name, self.exploration.strength]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Assumption:
        """Give back what `to_dict` was made of."""
        name, strength = values["exploration"]
        return cls(
            exploration=FAMILIES[name](strength),
            ridge=as_number(values["ridge"], "ridge", above=0.0),
            precision=as_number(values["precision"], "precision", above=0.0),
            slip=as_number(values["slip"], "slip", least=0.0, most=1.0),
        )
