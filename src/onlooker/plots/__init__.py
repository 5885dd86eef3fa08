"""Charts as plain data, and the renderers that draw them."""

from onlooker.plots.comparison import comparison_charts
from onlooker.plots.curves import burn_in_curves
from onlooker.plots.diagnosis import diagnosis_charts
from onlooker.plots.dots import DotChart
from onlooker.plots.draw import AnyChart, to_png, to_svg
from onlooker.plots.figure import Chart, Level, Mark, Series
from onlooker.plots.intervals import IntervalChart
from onlooker.plots.sheet import sheet_png, sheet_svg

__all__ = [
    "AnyChart",
    "Chart",
    "DotChart",
    "IntervalChart",
    "Level",
    "Mark",
    "Series",
    "burn_in_curves",
    "comparison_charts",
    "diagnosis_charts",
    "sheet_png",
    "sheet_svg",
    "to_png",
    "to_svg",
]
