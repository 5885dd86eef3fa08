"""Steps along a line: how much the objective must fall, and halving a step until it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from onlooker.base.types import Vector

DESCENT = 1e-4
"""Part of what a step promises by its slope that it must keep (Armijo), as is usual."""


class Place(Protocol):
    """An objective at one theta."""

    @property
    def theta(self) -> Vector:
        """Where."""

    @property
    def value(self) -> float:
        """How large it is."""

    @property
    def gradient(self) -> Vector:
        """Its gradient."""


Looked = TypeVar("Looked", bound=Place)


def falls(ahead: float, here: float, slope: float) -> bool:
    """Whether a step from `here`, along which the objective falls by `slope` at first, falls enough.

    Examples
    --------
    >>> falls(0.99, 1.0, -0.1), falls(1.0, 1.0, -0.1)
    (True, False)
    """
    return ahead <= here + DESCENT * slope


def rounding(value: float) -> float:
    """By how much two values of an objective may differ that are the same."""
    return 1e-14 * max(1.0, abs(value))


def backtrack(look: Callable[[Vector], Looked], here: Place, step: Vector, *, looks: int) -> tuple[Looked | None, int]:
    """Halve the step until the objective falls; near the minimum, where it cannot be seen to, by the gradient.

    What was found ahead, None after so many `looks` without; and how many it took.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> square = lambda x: SimpleNamespace(theta=x, value=float(x @ x), gradient=2 * x)
    >>> ahead, looks = backtrack(square, square(np.ones(1)), np.full(1, -3.0), looks=8)
    >>> ahead.theta.tolist(), looks
    ([-0.5], 2)
    """
    slope, length = float(here.gradient @ step), 1.0
    for taken in range(1, looks + 1):
        ahead = look(here.theta + length * step)
        if falls(ahead.value, here.value, length * slope):
            return ahead, taken
        if ahead.value <= here.value + rounding(here.value) and largest(ahead.gradient) < largest(here.gradient):
            return ahead, taken
        length /= 2
    return None, looks


def largest(gradient: Vector) -> float:
    """Largest absolute component."""
    return float(np.abs(gradient).max())
