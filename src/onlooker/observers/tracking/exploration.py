"""What is assumed of a learner before its picks are looked at, and what that means for the compiled filter."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from onlooker.base.checks import as_number, as_whole

if TYPE_CHECKING:
    from onlooker.kernels.margins import Model

LARGEST = 1e9
"""Constants beyond this, or below its inverse, are refused."""


@dataclass(frozen=True)
class UCB:
    """Optimism: the best of `<x, theta> + alpha sqrt(x' V^-1 x)` is picked.

    Examples
    --------
    A LinUCB with `alpha=0.1` whose rewards have noise 0.1:

    >>> UCB(0.1 / 0.1)
    UCB(alpha=1.0)
    """

    name: ClassVar[str] = "UCB"
    words: ClassVar[str] = "optimism (upper confidence bounds)"
    constant: ClassVar[str] = "alpha"
    unit: ClassVar[str] = " times the reward noise"

    alpha: float
    """Width of the bonus, in units of the reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_number(self.alpha, "alpha", least=0.0, most=LARGEST))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.alpha


@dataclass(frozen=True)
class TS:
    """Thompson sampling: the best for a parameter drawn from `N(theta, nu V^-1)` is picked.

    Examples
    --------
    A LinTS with `nu=0.2` whose rewards have noise 0.1:

    >>> round(TS(0.2 / 0.1**2).nu, 6)
    20.0
    """

    name: ClassVar[str] = "TS"
    words: ClassVar[str] = "Thompson sampling"
    constant: ClassVar[str] = "nu"
    unit: ClassVar[str] = " times the reward noise squared"

    nu: float
    """Scale of the covariance, in units of the squared reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", as_number(self.nu, "nu", least=1 / LARGEST, most=LARGEST))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.nu


@dataclass(frozen=True)
class Lapse:
    """Epsilon-greedy: the best arm is picked, except in a share `epsilon` of the rounds, where any arm is.

    Examples
    --------
    >>> Lapse(0.05)
    Lapse(epsilon=0.05)
    """

    name: ClassVar[str] = "Lapse"
    words: ClassVar[str] = "epsilon-greedy"
    constant: ClassVar[str] = "epsilon"
    unit: ClassVar[str] = ""

    epsilon: float
    """Share of uniform picks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_number(self.epsilon, "epsilon", least=0.0, most=1.0))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.epsilon


@dataclass(frozen=True)
class Softmax:
    """Arms are picked with probability proportional to `exp(<x, theta> / temperature)`.

    Examples
    --------
    A Boltzmann learner of temperature 0.05 whose rewards have noise 0.1:

    >>> Softmax(0.05 / 0.1)
    Softmax(temperature=0.5)
    """

    name: ClassVar[str] = "Softmax"
    words: ClassVar[str] = "softmax picks (Boltzmann exploration)"
    constant: ClassVar[str] = "temperature"
    unit: ClassVar[str] = " times the reward noise"

    temperature: float
    """In units of the reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "temperature", as_number(self.temperature, "temperature", least=1 / LARGEST, most=LARGEST)
        )

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.temperature


Exploration = UCB | TS | Lapse | Softmax
FAMILIES: dict[str, type[Exploration]] = {one.name: one for one in (UCB, TS, Lapse, Softmax)}
"""The kinds of exploration that are compared, by name."""


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
    noise: float = 0.0
    """Deviation of normal noise on every score, as of features that are not in the log; no known learner has any."""
    known: float = 0.0
    """What the learner knew at the log's first round: `V` is this much larger there, in every direction alike."""
    batch: int = 1
    """Rounds after which the learner updates, counted from the log's first."""
    memory: float = 1.0
    """What a round counts for after one more; below 1 for a learner that forgets, which no family does."""
    rate: float = 0.0
    """Of gradient steps, for a learner that makes such instead of keeping `V`; no family does."""
    other: Exploration | None = None
    """How every other pick comes about, at random: two learners that take turns, which no family is."""

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
            jitter=self.noise**2,
            temperature=self.exploration.temperature
            if isinstance(self.exploration, Softmax) and not self.noise
            else 0.0,
            lapse=self.lapse,
            shrink=0.0 if self.rate else self.ridge - self.precision,
            waits=1.0 if self.batch > 1 else 0.0,
            rate=self.rate,
        )

    def as_of_0_1(self) -> Assumption:
        """The same as release 0.1 took it: a softmax by normal noise of the same variance."""
        if not isinstance(self.exploration, Softmax):
            return self
        return replace(self, noise=math.pi * self.exploration.temperature / math.sqrt(6))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {**asdict(self), "exploration": [self.exploration.name, self.exploration.strength]}
        if self.other is not None:
            found["other"] = [self.other.name, self.other.strength]
        for name, usual in (
            ("noise", 0.0),
            ("known", 0.0),
            ("batch", 1),
            ("memory", 1.0),
            ("rate", 0.0),
            ("other", None),
        ):
            if found[name] == usual:
                del found[name]
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Assumption:
        """Give back what `to_dict` was made of."""
        name, strength = values["exploration"]
        other = values.get("other")
        return cls(
            exploration=FAMILIES[name](strength),
            other=None if other is None else FAMILIES[other[0]](other[1]),
            ridge=as_number(values["ridge"], "ridge", above=0.0),
            precision=as_number(values["precision"], "precision", above=0.0),
            slip=as_number(values["slip"], "slip", least=0.0, most=1.0),
            noise=as_number(values.get("noise", 0.0), "noise", least=0.0),
            known=as_number(values.get("known", 0.0), "known", least=0.0),
            batch=as_whole(values.get("batch", 1), "batch", least=1),
            memory=as_number(values.get("memory", 1.0), "memory", above=0.0, most=1.0),
            rate=as_number(values.get("rate", 0.0), "rate", least=0.0),
        )
