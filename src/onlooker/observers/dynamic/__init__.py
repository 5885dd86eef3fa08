"""Weights that walk: follow what any learner picks by, without a model of how it learns."""

from onlooker.observers.dynamic.path import WeightPath

__all__ = ["WeightPath"]
