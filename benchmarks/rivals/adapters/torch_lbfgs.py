"""PyTorch: cross entropy in float32, minimised by its own L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    n, k, d = problem.X.shape
    rows, chosen = torch.from_numpy(problem.X).reshape(n * k, d), torch.from_numpy(problem.chosen)

    def run(iterations: int) -> Array:
        theta = torch.zeros(d, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [theta],
            max_iter=iterations,
            max_eval=4 * iterations,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=10,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            scores = (rows @ theta).reshape(n, k)
            loss = torch.nn.functional.cross_entropy(scores, chosen) + problem.l2 / 2 * theta @ theta
            loss.backward()
            return loss

        optimiser.step(closure)
        return theta.detach().numpy()

    return run
