"""Imitation of a log in parts that are not in memory: its objective, and all of its suffixes in a few passes."""

from onlooker.parted.objective import PartedObjective, RunPass
from onlooker.parted.suffixes import refine_suffixes

__all__ = ["PartedObjective", "RunPass", "refine_suffixes"]
