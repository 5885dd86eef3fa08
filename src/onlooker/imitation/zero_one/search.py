"""Search for the policy that misses the fewest picks: circles through the best theta, and through new starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onlooker.base.types import Matrix, Progress, Vector
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.zero_one.circles import SLACK, Circles, ZeroOneFit, count_misses, directions_identified

WORK = 4e9
"""Feature values that a search may go through."""

FEWEST, MOST = 4, 600
"""Circles per direction of theta that a search of a very long log may take all the same, and that of a short one."""

RESTARTS = 60
"""New starts in a row without a gain end the search."""

STRAYS = (0.05, 0.2, 0.8)
"""How far from the best theta a new start may lie, as parts of its length; every third is anywhere."""


def fewest_misses(
    objective: SoftmaxObjective, start: Vector, *, seed: int = 0, progress: Progress | None = None
) -> ZeroOneFit:
    """Search for the theta of the smallest 0-1 loss, from `start` and never ending above it.

    Theta's length means nothing to the loss: it is such that scores spread within rounds as they do at `start`. If
    nothing that misses less is found, `start` is the answer. `progress` is called with the number of circles
    searched and the most there can be.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> X = np.random.default_rng(0).normal(size=(60, 3, 2))
    >>> chosen = (X @ [1.0, 2.0] + np.random.default_rng(1).gumbel(size=(60, 3))).argmax(axis=1)
    >>> objective = SoftmaxObjective(BanditLog.from_dense(X, chosen), l2=1e-4)
    >>> start = np.array([1.0, 2.0])
    >>> round(60 * count_misses(objective, start).loss), round(60 * fewest_misses(objective, start).loss)
    (15, 12)
    """
    given = count_misses(objective, start)
    columns, dual = directions_identified(objective)
    if given.loss == 0 or not columns.shape[1]:
        return given
    search = _Search(objective, columns, np.random.default_rng(seed), progress)
    origin = dual.T @ start
    length = float(np.linalg.norm(origin)) or 1.0
    best = search.run(origin / length)
    found = count_misses(objective, length * (columns @ best))
    return replace(found if found.loss < given.loss else given, n_iter=search.n_circles)


class _Search:
    """The state of a search among `theta = columns @ u` with `|u| = 1`."""

    def __init__(
        self, objective: SoftmaxObjective, columns: Matrix, rng: np.random.Generator, progress: Progress | None
    ) -> None:
        self._circles = Circles(objective)
        self._columns, self._rng, self._progress = columns, rng, progress
        self._size = columns.shape[1]
        self._slack = SLACK * objective.total
        self._enough = objective.total - self._slack
        self._budget = int(np.clip(WORK / objective.log.features.size, FEWEST * self._size, MOST * self._size))
        self.n_circles = 0
        self._u, self._covered = np.zeros(self._size), -np.inf

    def run(self, start: Vector) -> Vector:
        """Descend from `start`, then from new starts until they find nothing better; give the best."""
        best, most, idle = start, -np.inf, 0
        here = start if start.any() else self._anywhere()
        # Where theta has two directions, the first circle holds all of them.
        restarts = RESTARTS if self._size > 2 else 1
        while idle < restarts and most < self._enough and self._has_budget():
            self._stand(here)
            self._descend()
            if self._covered > most + self._slack:
                best, most, idle = self._u, self._covered, 0
            else:
                idle += 1
            near = float(self._rng.choice(STRAYS)) * self._anywhere()
            here = self._anywhere() if idle % 3 == 2 else _unit(best + near)
        self._stand(best)
        for axis in np.eye(self._size):
            self._go(axis, widest=True)
        if self._progress is not None:
            self._progress(self._budget, self._budget)
        return self._u

    def _descend(self) -> None:
        """Go round along the axes, at random, and where the last cycle led (Powell's conjugate directions)."""
        directions, before = list(np.eye(self._size)), -np.inf
        while True:
            origin = self._u
            gains = [self._go(direction) for direction in directions]
            for _ in range(self._size):
                self._go(self._anywhere())
            led = self._u - origin
            if led.any():
                self._go(led)
                directions[int(np.argmax(gains))] = led
            if self._covered <= before + self._slack or self._covered >= self._enough or not self._has_budget():
                break
            before = self._covered

    def _go(self, direction: Vector, *, widest: bool = False) -> float:
        """Search the circle through here and `direction`, stand where it explains the most, and give the gain.

        Of stretches that explain as much, any will do, so that a descent does not walk the same way twice; `widest`
        takes the one that leaves the most room.
        """
        across = direction - (direction @ self._u) * self._u
        length = float(np.linalg.norm(across))
        # Where theta has one direction, a circle still holds its opposite.
        along = length <= 1e-9 * float(np.linalg.norm(direction)) and self._size > 1
        if along or not (widest or self._has_budget()):
            return 0.0
        across = across / (length or 1.0)
        found = self._circles.look(self._columns @ across)
        self._count()
        if found.covered < self._covered - self._slack:
            return 0.0
        pick = int(found.widths.argmax()) if widest else int(self._rng.integers(len(found.widths)))
        angle = float(found.middles[pick])
        self._circles.turn(angle)
        self._u = _unit(np.cos(angle) * self._u + np.sin(angle) * across)
        gain, self._covered = found.covered - self._covered, found.covered
        return gain

    def _stand(self, u: Vector) -> None:
        self._u, self._covered = u, -np.inf
        self._circles.stand(self._columns @ u)

    def _anywhere(self) -> Vector:
        return _unit(self._rng.standard_normal(size=(self._size,)))

    def _has_budget(self) -> bool:
        return self.n_circles < self._budget

    def _count(self) -> None:
        self.n_circles += 1
        if self._progress is not None:
            self._progress(min(self.n_circles, self._budget), self._budget)


def _unit(vector: Vector) -> Vector:
    scaled: Vector = vector / np.sqrt(vector @ vector)
    return scaled
