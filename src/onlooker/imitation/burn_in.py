"""Rules for the burn-in: how many of a log's first rounds to discard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog


@runtime_checkable
class BurnIn(Protocol):
    """Anything that can say where a log's suffix starts."""

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""


@runtime_checkable
class LengthRule(Protocol):
    """A burn-in that depends on nothing but the length of the log, so that the log itself need not be there."""

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""


@dataclass(frozen=True)
class FixedStart:
    """Throw away the same number of rounds whatever the log."""

    rounds: int = 0
    """How many."""

    def __post_init__(self) -> None:
        as_whole(self.rounds, "the burn-in")

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:  # noqa: ARG002  the protocol's shape
        """Number of rounds to discard out of `n_rounds`."""
        return self.rounds


@dataclass(frozen=True)
class Fraction:
    """Throw away a fraction of the log."""

    fraction: float
    """Between 0 and 1, 1 excluded."""

    def __post_init__(self) -> None:
        if as_number(self.fraction, "the burn-in fraction", least=0.0) >= 1:
            raise InputError(f"the burn-in fraction is {self.fraction}: it must lie below 1")

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""
        return int(self.fraction * n_rounds + 1e-9)


@dataclass(frozen=True)
class PowerRule:
    """The paper's rule: discard `N ** exponent` rounds.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((10_000, 2, 1)), chosen=np.zeros(10_000, dtype=int))
    >>> PowerRule(0.9).start(log)
    3981
    """

    exponent: float = 0.9
    """Between 0 and 1."""

    def __post_init__(self) -> None:
        as_number(self.exponent, "the burn-in exponent", least=0.0, most=1.0)

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""
        return power_start(n_rounds, self.exponent)


def power_start(n_rounds: int, exponent: float) -> int:
    """`floor(N ** exponent)`, exact where the power is a whole number."""
    power = float(n_rounds) ** exponent
    return min(n_rounds, int(np.floor(power * (1 + 1e-12))))
