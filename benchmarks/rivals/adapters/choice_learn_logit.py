"""choice-learn: its simple MNL by TensorFlow Probability's L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from choice_learn.data import ChoiceDataset
from choice_learn.models import SimpleMNL

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    n, k, _ = problem.X.shape
    data = ChoiceDataset(
        choices=problem.chosen,
        items_features_by_choice=(problem.X,),
        available_items_by_choice=np.ones((n, k), dtype=np.float32),
    )

    def run(iterations: int) -> Array:
        model = SimpleMNL(
            optimizer="lbfgs",
            epochs=iterations,
            lbfgs_tolerance=1e-12,
            regularization="l2",
            # It multiplies the sum of squares itself, not half of it.
            regularization_strength=problem.l2 / 2,
        )
        model.fit(data)
        return np.asarray(model.trainable_weights[0])

    return run
