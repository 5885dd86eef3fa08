"""Charts as plain data, and the renderers that draw them."""

from onlooker.plots.curves import burn_in_curves
from onlooker.plots.draw import to_png, to_svg
from onlooker.plots.figure import Chart, Level, Mark, Series

__all__ = ["Chart", "Level", "Mark", "Series", "burn_in_curves", "to_png", "to_svg"]
