"""Beliefs that picks were sampled from, and how they moved: the Bayesian inverse contextual bandits."""

from onlooker.observers.earlier.beliefs.maximisation import Schedule, maximise
from onlooker.observers.earlier.beliefs.model import BeliefModel
from onlooker.observers.earlier.beliefs.posterior import Moments, posterior
from onlooker.observers.earlier.beliefs.walk import walk_moments

__all__ = ["BeliefModel", "Moments", "Schedule", "maximise", "posterior", "walk_moments"]
