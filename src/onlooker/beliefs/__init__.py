"""Beliefs that picks were sampled from, and how they moved: the Bayesian inverse contextual bandits."""

from onlooker.beliefs.maximisation import Schedule, maximise
from onlooker.beliefs.model import BeliefModel
from onlooker.beliefs.posterior import Moments, posterior
from onlooker.beliefs.walk import walk_moments

__all__ = ["BeliefModel", "Moments", "Schedule", "maximise", "posterior", "walk_moments"]
