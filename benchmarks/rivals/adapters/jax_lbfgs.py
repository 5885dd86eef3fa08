"""JAX: the loss compiled in float32 with its gradient, minimised by SciPy's L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    X, chosen = jnp.asarray(problem.X), jnp.asarray(problem.chosen)

    @jax.jit
    def slope(theta: jax.Array, X: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss(theta: jax.Array) -> jax.Array:
            scores = X @ theta
            picked = jnp.take_along_axis(scores, chosen[:, None], axis=1)[:, 0]
            return jnp.mean(jax.nn.logsumexp(scores, axis=1) - picked) + problem.l2 / 2 * theta @ theta

        return jax.value_and_grad(loss)(theta)

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = slope(jnp.asarray(theta, dtype=jnp.float32), X, chosen)
        return float(value), np.asarray(gradient, dtype=np.float64)

    def run(iterations: int) -> Array:
        options = {"maxiter": iterations, "ftol": 0.0, "gtol": 0.0}
        start = np.zeros(problem.X.shape[2])
        return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)

    return run
