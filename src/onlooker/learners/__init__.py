"""Learners to simulate: each picks an arm, sees its reward, and changes its mind."""

from onlooker.learners.base import Learner
from onlooker.learners.greedy import EpsilonGreedy, ExploreThenCommit, UniformRandom
from onlooker.learners.optimistic import OFUL, LinUCB
from onlooker.learners.ridge import Player, RidgeLearner
from onlooker.learners.sampling import Boltzmann, LinTS

__all__ = [
    "OFUL",
    "Boltzmann",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "Learner",
    "LinTS",
    "LinUCB",
    "Player",
    "RidgeLearner",
    "UniformRandom",
]
