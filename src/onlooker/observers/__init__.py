"""Observers: from a log to a policy."""
