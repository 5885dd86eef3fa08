"""Hostile input: mutated files for every reader, and what may come of them."""
