"""Compiling the kernels ahead of use: once per machine, kept on disk by numba."""

import warnings

from onlooker.errors import OnlookerWarning


def compile_kernels(dtype: str = "float32") -> None:
    """Run every kernel once on a small log. Do it before starting worker processes: the cache is shared.

    Examples
    --------
    >>> compile_kernels("float64")
    """
    from onlooker.environment import Environment
    from onlooker.learners import LinUCB
    from onlooker.observers import IBCB, SuffixImitation, TrackingObserver
    from onlooker.simulation import simulate
    from onlooker.softmax import SoftmaxObjective, round_losses
    from onlooker.zero_one.circles import Circles

    simulation = simulate(Environment(2, 3, dtype=dtype), LinUCB(), n_rounds=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        observer = SuffixImitation(burn_in="naive").fit(simulation.log)
        # All families, by the same kernels.
        TrackingObserver().fit(simulation.log).predict_proba(simulation.log)
        IBCB().fit(simulation.log)
    round_losses(simulation.log, observer.theta_)
    circles = Circles(SoftmaxObjective(simulation.log, l2=0.0))
    circles.stand(observer.theta_)
    circles.look(observer.theta_)
