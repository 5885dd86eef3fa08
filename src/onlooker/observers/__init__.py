"""Observers: from a log to a policy."""

from onlooker.observers.base import Observer
from onlooker.observers.suffix_imitation import SuffixImitation
from onlooker.observers.summary import Coefficient, Summary
from onlooker.observers.tracking import TrackingObserver
from onlooker.observers.tracking_summary import TrackingSummary

__all__ = ["Coefficient", "Observer", "SuffixImitation", "Summary", "TrackingObserver", "TrackingSummary"]
