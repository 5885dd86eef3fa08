"""Tracking: follow a ridge learner's estimate round by round, whatever its way to explore."""
