"""The log: what was offered and what was picked; the policies that score it."""
