"""Tracking: follow a ridge learner's estimate round by round, and find how it explores."""

from onlooker.observers.tracking.assumptions import FAMILIES, TS, UCB, Exploration, Lapse, Softmax

__all__ = ["FAMILIES", "TS", "UCB", "Exploration", "Lapse", "Softmax"]
