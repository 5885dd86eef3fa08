"""Observers: from a log to a policy."""

from onlooker.observers.base import Observer
from onlooker.observers.suffix_imitation import SuffixImitation
from onlooker.observers.summary import Coefficient, Summary

__all__ = ["Coefficient", "Observer", "SuffixImitation", "Summary"]
