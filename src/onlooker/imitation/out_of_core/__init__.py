"""Imitation of a log in parts that are not in memory: its objective, and all of its suffixes in a few passes."""

from onlooker.imitation.out_of_core.objective import PartedObjective, RunPass
from onlooker.imitation.out_of_core.suffixes import refine_suffixes

__all__ = ["PartedObjective", "RunPass", "refine_suffixes"]
