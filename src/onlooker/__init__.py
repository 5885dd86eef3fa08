"""Recover what a bandit learned, from its actions alone."""

__version__ = "0.1.0"
