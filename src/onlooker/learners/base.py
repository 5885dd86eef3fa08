"""What a learner is: it chooses an arm, then sees what that arm paid."""

from typing import Any, Protocol, runtime_checkable

from onlooker.types import Features


@runtime_checkable
class Learner(Protocol):
    """Any object with these two methods can play; write your own.

    A learner that draws random numbers should also have a method `reset(rng)`: it is called once before the first
    round, with a generator that follows the seed of the simulation.

    Examples
    --------
    >>> class First:
    ...     def choose(self, features):
    ...         return 0
    ...     def update(self, features_of_pick, reward):
    ...         pass
    >>> isinstance(First(), Learner)
    True
    """

    def choose(self, features: Features) -> int:
        """Position of the pick; `features` has one row per arm on offer, read-only."""
        ...

    def update(self, features_of_pick: Any, reward: float) -> None:
        """Take in the reward of the arm that was picked; `features_of_pick` is its row."""
        ...
