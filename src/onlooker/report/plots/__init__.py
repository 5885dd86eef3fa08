"""Charts as plain data, and the renderers that draw them."""

from onlooker.report.plots.charts import Chart, DotChart, IntervalChart, Level, Mark, Series
from onlooker.report.plots.curves import burn_in_curves, comparison_charts
from onlooker.report.plots.draw import AnyChart, to_png, to_svg, write_charts
from onlooker.report.plots.heat import HeatChart
from onlooker.report.plots.results import calibration_charts, diagnosis_charts
from onlooker.report.plots.sheet import sheet_png, sheet_svg

__all__ = [
    "AnyChart",
    "Chart",
    "DotChart",
    "HeatChart",
    "IntervalChart",
    "Level",
    "Mark",
    "Series",
    "burn_in_curves",
    "calibration_charts",
    "comparison_charts",
    "diagnosis_charts",
    "sheet_png",
    "sheet_svg",
    "to_png",
    "to_svg",
    "write_charts",
]
