"""Observers: from a log to a policy."""

from onlooker.observers.base import Observer
from onlooker.observers.dynamic_imitation import DynamicImitation
from onlooker.observers.earlier.bayesian_icb import BayesianICB
from onlooker.observers.earlier.block_imitation import BlockImitation
from onlooker.observers.earlier.change_point import ChangePointImitation
from onlooker.observers.earlier.ibcb import IBCB
from onlooker.observers.earlier.nonparametric_icb import NonparametricICB
from onlooker.observers.earlier.ranked_blocks import RankedBlocks
from onlooker.observers.suffix_imitation import SuffixImitation
from onlooker.observers.summaries import Coefficient, Summary, TrackingSummary
from onlooker.observers.tracking_observer import TrackingObserver

__all__ = [
    "IBCB",
    "BayesianICB",
    "BlockImitation",
    "ChangePointImitation",
    "Coefficient",
    "DynamicImitation",
    "NonparametricICB",
    "Observer",
    "RankedBlocks",
    "SuffixImitation",
    "Summary",
    "TrackingObserver",
    "TrackingSummary",
]
