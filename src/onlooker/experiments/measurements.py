"""The table of results, arranged by setting: what each method reached, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.types import Matrix, Vector

Row = Mapping[str, Any]
"""One row of a table: numbers as such or as written in CSV, where an empty cell is no value."""

METRICS = {"predictive_regret": "predictive regret", "direction_error": "direction error"}
"""Column of the table, and its name; in the paper's order."""

ORACLE = "oracle"
"""The best alpha of each seed, picked by looking at the truth: it profits from luck."""

BEST_ALPHA = "best single alpha"
"""At each horizon the one alpha that has the lowest mean over all seeds."""


@dataclass(frozen=True, order=True)
class Setting:
    """A panel of the paper: who learned, in how many dimensions, from how many arms.

    Examples
    --------
    >>> str(Setting("LinTS", 50, 200)), Setting("LinTS", 50, 200).key
    ('LinTS, d = 50, K = 200', 'LinTS-d50-K200')
    """

    learner: str
    d: int
    K: int

    def __str__(self) -> str:
        return f"{self.learner}, d = {self.d}, K = {self.K}"

    @property
    def key(self) -> str:
        """Short form, for keys and names of files."""
        return f"{self.learner}-d{self.d}-K{self.K}"

    @classmethod
    def of(cls, row: Row) -> Setting:
        """Take a row's."""
        return cls(str(row["learner"]), int(row["d"]), int(row["K"]))


@dataclass(frozen=True, eq=False)
class Curve:
    """One metric by alpha, seed by seed."""

    alphas: Vector
    """Increasing, shape (m,)."""
    values: Matrix
    """Shape (seeds, m)."""
    seeds: tuple[int, ...]
    """Those that have a value at every alpha."""

    @property
    def best(self) -> int:
        """Position of the alpha with the lowest mean over seeds."""
        return int(self.values.mean(axis=0).argmin())


class Measurements:
    """The results by setting, horizon, method and metric.

    Examples
    --------
    >>> shared = {"learner": "LinTS", "d": 20, "K": 50, "N": 500, "alpha": ""}
    >>> table = Measurements(
    ...     shared | {"seed": seed, "method": "naive", "direction_error": 0.5 + seed, "predictive_regret": 0.1}
    ...     for seed in (0, 1)
    ... )
    >>> table.of(table.settings[0], 500, "naive", "direction_error")
    {0: 0.5, 1: 1.5}
    """

    def __init__(self, results: Iterable[Row]) -> None:
        self._cells: dict[tuple[Setting, int], dict[tuple[str, float | None], dict[int, dict[str, float]]]] = {}
        for row in results:
            cell = self._cells.setdefault((Setting.of(row), int(row["N"])), {})
            alpha = float(row["alpha"]) if row["method"] == "sweep" else None
            values = {metric: math.nan if row[metric] in {None, ""} else float(row[metric]) for metric in METRICS}
            cell.setdefault((str(row["method"]), alpha), {})[int(row["seed"])] = values
        self.settings = tuple(sorted({setting for setting, _ in self._cells}))

    def horizons(self, setting: Setting) -> tuple[int, ...]:
        """Numbers of rounds, increasing."""
        return tuple(sorted(N for where, N in self._cells if where == setting))

    def methods(self, setting: Setting, N: int) -> tuple[str, ...]:
        """Names of the methods, those made of the sweep included."""
        names = {method for method, _ in self._cells.get((setting, N), ())}
        return tuple(sorted(names - {"sweep"} | ({ORACLE, BEST_ALPHA} if "sweep" in names else set())))

    def curve(self, setting: Setting, N: int, metric: str) -> Curve | None:
        """Return the metric by alpha over the seeds that have the whole curve; None where there is none."""
        cells = {
            alpha: {seed: value[metric] for seed, value in cell.items() if math.isfinite(value[metric])}
            for (_, alpha), cell in self._cells.get((setting, N), {}).items()
            if alpha is not None
        }
        # An alpha that leaves too little to fit has no values at all: it is no reason to lose the others.
        alphas = sorted(alpha for alpha, cell in cells.items() if cell)
        seeds = sorted(set.intersection(*(set(cells[alpha]) for alpha in alphas))) if alphas else []
        if not seeds:
            return None
        values = np.array([[cells[alpha][seed] for alpha in alphas] for seed in seeds])
        return Curve(np.array(alphas), values, tuple(seeds))

    def of(self, setting: Setting, N: int, method: str, metric: str) -> dict[int, float]:
        """Return the metric by seed, without the seeds that have no value."""
        if method in {ORACLE, BEST_ALPHA}:
            curve = self.curve(setting, N, metric)
            if curve is None:
                return {}
            picked = curve.values.min(axis=1) if method == ORACLE else curve.values[:, curve.best]
            return dict(zip(curve.seeds, picked.tolist(), strict=True))
        cell = self._cells.get((setting, N), {}).get((method, None), {})
        return {seed: cell[seed][metric] for seed in sorted(cell) if math.isfinite(cell[seed][metric])}

    def paired(self, setting: Setting, metric: str, *places: tuple[int, str]) -> Matrix:
        """Return the metric at several (N, method), shape (seeds, places), over the seeds that have them all."""
        columns = [self.of(setting, N, method, metric) for N, method in places]
        seeds = sorted(set.intersection(*map(set, columns))) if columns else []
        return np.array([[column[seed] for column in columns] for seed in seeds]).reshape(len(seeds), len(places))
