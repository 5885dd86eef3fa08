"""Simulate a learner in an environment and keep its log."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import as_whole
from onlooker.base.errors import InputError
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features, Index, Matrix, Progress, Vector
from onlooker.logs.layouts import dense_rows
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from onlooker.simulation.environment import Contexts, Environment, Stream, generator
from onlooker.simulation.ridge import Learner, RidgeLearner

GATHER_ROUNDS = 4096
"""Picks whose rows are gathered at once for the learner's estimates."""

Mapper = Callable[[Callable[[int], tuple[int, int]], Iterable[int]], Iterable[tuple[int, int]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """What a learner did, with the rewards and the truth that an observer does not see."""

    log: BanditLog
    """Offers and picks."""

    rewards: Vector
    """Reward of each pick, shape (N,)."""

    theta_star: Vector
    """True parameter of the rewards, shape (d,)."""

    learner: Learner | RidgeLearner
    """The learner, as it was passed in."""

    seed: int
    """Seed of contexts, noise and the learner's random picks."""

    environment: Environment | None = None
    """Where it played, where rewards are not linear; None where `theta_star` says it all."""

    @property
    def learner_theta(self) -> Vector:
        """Ridge estimate from all picks and their rewards, shape (d,): the best that the learner can do."""
        estimate: Vector = self.learner_path([self.log.n_rounds])[0]
        return estimate

    def learner_path(self, checkpoints: Sequence[int] | NDArray[np.integer]) -> Matrix:
        """Ridge estimate from the first `c` rounds for every checkpoint `c`, shape (checkpoints, d).

        The weight of the ridge is the learner's own, or 1 for a learner that has no `ridge`.

        Examples
        --------
        >>> from onlooker.simulation.learners import LinUCB
        >>> simulation = simulate(Environment(3, 10), LinUCB(), n_rounds=200)
        >>> errors = np.linalg.norm(simulation.learner_path([10, 200]) - simulation.theta_star, axis=1)
        >>> bool(errors[1] < errors[0])
        True
        """
        n_rounds, d = self.log.n_rounds, self.log.n_features
        ends = [as_whole(checkpoint, "a checkpoint") for checkpoint in checkpoints]
        if ends and max(ends) > n_rounds:
            raise InputError(f"a checkpoint is {max(ends)}, but the log has {n_rounds} rounds")
        rows = self.log.chosen_rows
        gram, moment = np.eye(d) * float(getattr(self.learner, "ridge", 1.0)), np.zeros(d)
        path = np.empty((len(ends), d))
        done = 0
        for place in np.argsort(ends, kind="stable"):
            while done < ends[place]:
                stop = min(done + GATHER_ROUNDS, ends[place])
                picked = dense_rows(self.log.features[rows[done:stop]]).astype(np.float64, copy=False)
                gram += picked.T @ picked
                moment += picked.T @ self.rewards[done:stop]
                done = stop
            path[place] = np.linalg.solve(gram, moment)
        return path

    @property
    def regret(self) -> Vector:
        """Expected reward of the best arm less that of the pick, in every round, shape (N,)."""
        scores = LinearPolicy(self.theta_star).scores(self.log)
        if self.environment is not None:
            scores = self.environment.expected(self.log.dense)
        best = np.maximum.reduceat(scores, self.log.offsets[:-1])
        return np.asarray(best - scores[self.log.chosen_rows], dtype=np.float64)


def simulate(
    environment: Environment,
    learner: Learner | RidgeLearner,
    n_rounds: int,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> Simulation:
    """Play `n_rounds` rounds. The same seed gives the same log, whatever the number of threads.

    A learner of your own is copied first, so it is as fresh after the simulation as before; see `Learner`.

    Examples
    --------
    >>> from onlooker.simulation.learners import LinUCB
    >>> simulation = simulate(Environment(5, 20), LinUCB(alpha=0.1), n_rounds=300, seed=1)
    >>> simulation.log
    BanditLog(300 rounds, 20 arms, 5 features, float32)
    >>> early, late = simulation.regret[:100].mean(), simulation.regret[200:].mean()
    >>> bool(late < early)
    True
    """
    return _simulate(environment, learner, n_rounds, seed, progress, ordered_map)


def simulate_many(
    environment: Environment,
    learner: Learner | RidgeLearner,
    n_rounds: int,
    seeds: Iterable[int],
) -> Iterator[Simulation]:
    """Simulate every seed, several at once on threads; each log is the one that `simulate` gives.

    No more simulations are held than there are threads, besides those that the caller keeps.

    Examples
    --------
    >>> from onlooker.simulation.learners import LinTS
    >>> [run.seed for run in simulate_many(Environment(5, 20), LinTS(), 100, seeds=[3, 1])]
    [3, 1]
    """
    run = partial(_simulate, environment, learner, n_rounds, progress=None, mapper=map)
    return ordered_map(run, seeds, per_thread=1)


def _simulate(
    environment: Environment,
    learner: Learner | RidgeLearner,
    n_rounds: int,
    seed: int,
    progress: Progress | None,
    mapper: Mapper,
) -> Simulation:
    """Draw contexts ahead on the threads of `mapper`, play them in order on this one."""
    n_rounds, seed = as_whole(n_rounds, "n_rounds", least=1), as_whole(seed, "seed")
    contexts = environment.contexts(n_rounds, seed)
    noise = environment.reward_noise(n_rounds, seed)
    chosen, rewards = np.empty(n_rounds, dtype=np.int64), np.empty(n_rounds)
    rng = generator(seed, Stream.LEARNER)
    play: Callable[[Contexts, tuple[int, int], Vector, Vector, Index, Vector], None]
    linear = environment.is_linear
    if isinstance(learner, RidgeLearner) and not linear:
        player = learner.start(rng, n_features=environment.n_features, noise=environment.noise)
        play = partial(_play_by_protocol, player, environment.expected)
    elif isinstance(learner, RidgeLearner):
        play = learner.start(rng, n_features=environment.n_features, noise=environment.noise).play
    else:
        play = partial(_play_by_protocol, _fresh_copy(learner, rng), None if linear else environment.expected)
    for rounds in mapper(contexts.draw, range(contexts.n_blocks)):
        play(contexts, rounds, environment.theta_star, noise, chosen, rewards)
        if progress is not None:
            progress(rounds[1], n_rounds)
    rewards.flags.writeable = False
    # A learner from outside may have changed the offers.
    known = isinstance(learner, RidgeLearner)
    return Simulation(
        log=contexts.log(chosen) if known else BanditLog(contexts.features, contexts.offsets, chosen),
        rewards=rewards,
        theta_star=environment.theta_star,
        learner=learner,
        seed=seed,
        environment=None if linear else environment,
    )


def _fresh_copy(learner: Learner, rng: np.random.Generator) -> Learner:
    if isinstance(learner, type):
        raise InputError(f"{learner.__name__} is a class: pass a learner made of it, {learner.__name__}()")
    if not isinstance(learner, Learner):
        raise InputError(f"{learner!r} is not a learner: it needs the methods choose and update")
    fresh = deepcopy(learner)
    reset = getattr(fresh, "reset", None)
    if reset is not None:
        reset(rng)
    return fresh


def _play_by_protocol(
    learner: Learner,
    expected: Callable[[Features], Vector] | None,
    contexts: Contexts,
    rounds: tuple[int, int],
    theta_star: Vector,
    noise: Vector,
    chosen: Index,
    rewards: Vector,
) -> None:
    """Play a block of rounds through `choose` and `update`; `expected` gives rewards that are not linear."""
    from onlooker.kernels.learning import dot

    offers = contexts.features.view()
    offers.flags.writeable = False
    start = int(contexts.offsets[rounds[0]])
    worth = None if expected is None else expected(offers[start : int(contexts.offsets[rounds[1]])])
    for t in range(*rounds):
        first, last = int(contexts.offsets[t]), int(contexts.offsets[t + 1])
        pick = _checked_pick(learner.choose(offers[first:last]), t, last - first)
        chosen[t] = pick
        mean = dot(contexts.features, first + pick, theta_star) if worth is None else worth[first + pick - start]
        rewards[t] = mean + noise[t]
        learner.update(offers[first + pick], float(rewards[t]))


def _checked_pick(pick: object, t: int, n_arms: int) -> int:
    try:
        position = operator.index(pick)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(
            f"round {t}: the learner chose {pick!r}, but must choose a position as a whole number"
        ) from None
    if not 0 <= position < n_arms:
        raise InputError(f"round {t}: the learner chose position {position}, but {n_arms} arms are on offer (from 0)")
    return position
