"""One module a rival, all alike.

`SETTINGS` are how hard the rival tries, from least to most. `prepare(problem)` brings the data into the layout that the
rival wants and gives a function of one setting, which does the work that is timed: it returns theta for a fit, and the
picks for a simulation. Nothing here imports onlooker but its own adapters.
"""

ITERATIONS = (*range(1, 40), *range(40, 100, 4), *range(100, 520, 30))
"""Settings of a rival whose iterations can be limited."""

ONCE = (0,)
"""Settings of work that is what it is."""

PLAYED = 200
"""Rounds that a bandit library plays: their cost does not change from round to round, and they are slow."""
