"""The floor of any simulation: NumPy fills an array of the log's size with normals, on every core."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rivals.adapters import ONCE
from rivals.problem import Problem

SETTINGS = ONCE

ROUNDS = 128
"""Rounds that a thread draws at a time."""


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    n = len(problem.X)
    seeds = np.random.SeedSequence(problem.seed).spawn(-(-n // ROUNDS))

    def run(_setting: int) -> np.ndarray:
        features = np.empty_like(problem.X)

        def draw(block: int) -> None:
            part = features[block * ROUNDS : (block + 1) * ROUNDS]
            np.random.Generator(np.random.SFC64(seeds[block])).standard_normal(out=part, dtype=np.float32)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(draw, range(len(seeds))))
        return np.zeros(n, dtype=np.int64)

    return run
