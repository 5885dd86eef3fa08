"""The paper's figures from the two tables: charts as plain data, with captions in our own words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from onlooker.base.files import write_text
from onlooker.base.types import Vector
from onlooker.experiments.diagnostic_claims import Trend, trends
from onlooker.experiments.measurements import BEST_ALPHA, METRICS, ORACLE, Measurements, Row, Setting
from onlooker.experiments.statistics import mean
from onlooker.experiments.tables import write_csv
from onlooker.report.plots import Chart, Level, Series, sheet_png, sheet_svg
from onlooker.report.plots.charts import y_values

_METHODS = {
    "learner": "learner",
    "naive": "naive (T = 0)",
    "rule": "rule (T = N^0.9)",
    ORACLE: "oracle (per seed)",
    BEST_ALPHA: BEST_ALPHA,
    "auto": "auto (held-out)",
    "tracking": "tracking",
}

_COLUMNS = ("panel", "kind", "label", "x", "y", "low", "high")


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperFigure:
    """A figure of the paper: its panels, and what they show."""

    name: str
    """Such as "figure1-d50-K200": the name of its files."""
    title: str
    """In a few words."""
    caption: str
    """What is drawn, and what can be seen."""
    charts: tuple[Chart, ...]
    """In the paper's order."""

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the figure as PNG and SVG, and the numbers behind it as CSV; return the three paths."""
        png, svg, table = (Path(folder) / f"{self.name}.{suffix}" for suffix in ("png", "svg", "csv"))
        sheet_png(self.charts, png)
        write_text(svg, sheet_svg(self.charts) + "\n")
        write_csv(table, self.rows(), _COLUMNS)
        return png, svg, table

    def rows(self) -> list[dict[str, str | float | None]]:
        """Everything that is drawn, one row per point."""
        rows: list[dict[str, str | float | None]] = []
        for chart in self.charts:
            for series in chart.series:
                nothing = np.full(len(series.x), np.nan)
                low, high = (nothing if end is None else end for end in (series.low, series.high))
                points = zip(series.x.tolist(), series.y.tolist(), low.tolist(), high.tolist(), strict=True)
                rows += [_row(chart, "series", series.label, *point) for point in points]
            rows += [_row(chart, "level", at.label, None, at.y, at.low, at.high) for at in chart.levels]
        return rows


def paper_figures(results: Iterable[Row], diagnostics: Iterable[Row]) -> tuple[PaperFigure, ...]:
    """Draw every figure that the tables have rows for, the paper's main setting before those of its appendix.

    Examples
    --------
    >>> bins = [
    ...     {"learner": "LinUCB", "d": 50, "K": 200, "N": 10_000, "seed": seed, "kind": "bin", "index": i}
    ...     | {"start": 1000 * i, "stop": 1000 * (i + 1), "accuracy": 0.5 + 0.014 * i + 0.01 * seed}
    ...     for seed in range(3)
    ...     for i in range(10)
    ... ]
    >>> [figure.name for figure in paper_figures([], bins)]
    ['appendixA']
    """
    table = Measurements(results)
    sizes = sorted({(setting.d, setting.K) for setting in table.settings}, key=lambda size: (-size[0], -size[1]))
    panels = [[setting for setting in table.settings if (setting.d, setting.K) == size] for size in sizes]
    made = [_burn_in(table, settings) for settings in panels]
    made += [_horizons(table, settings) for settings in panels]
    made += _diagnostics(list(diagnostics))
    return tuple(figure for figure in made if figure is not None)


def _burn_in(table: Measurements, settings: Sequence[Setting]) -> PaperFigure | None:
    """Figure 1: both metrics against alpha at the longest horizon."""
    charts, lows = [], []
    for setting in settings:
        N = table.horizons(setting)[-1]
        for metric, name in METRICS.items():
            curve = table.curve(setting, N, metric)
            if curve is None:
                continue
            series = _series("observer", curve.alphas, list(curve.values.T))
            levels = _level("learner", list(table.of(setting, N, "learner", metric).values()))
            charts.append(
                _chart(f"{setting.learner}: {name}", "alpha (T = N^alpha)", name, (series,), levels, log_x=False)
            )
            lows.append(f"{curve.alphas[curve.best]:g} ({setting.learner}, {name})")
    if not charts:
        return None
    d, K, N = settings[0].d, settings[0].K, table.horizons(settings[0])[-1]
    caption = (
        f"What the observer gets wrong after a burn-in of N^alpha rounds, for d = {d}, K = {K}, N = {N:,}: mean over "
        f"{_seeds(table, settings)} seeds, with the 95% t-interval of the mean as a band. The horizontal line is the "
        f"learner's own ridge estimate after the last round. The mean is lowest at alpha = {', '.join(lows)}."
    )
    title = f"Figure 1: error against burn-in, d = {d}, K = {K}"
    return PaperFigure(name=f"figure1-d{d}-K{K}", title=title, caption=caption, charts=tuple(charts))


def _horizons(table: Measurements, settings: Sequence[Setting]) -> PaperFigure | None:
    """Figure 2: both metrics against the number of rounds."""
    shown = [setting for setting in settings if len(table.horizons(setting)) > 1]
    present = {method for setting in shown for N in table.horizons(setting) for method in table.methods(setting, N)}
    methods = [*(method for method in _METHODS if method in present), *sorted(present - set(_METHODS))]
    charts = []
    for setting in shown:
        horizons = table.horizons(setting)
        for metric, name in METRICS.items():
            # All panels have the same series in the same order, so that they share a legend.
            series = tuple(
                _series(
                    _METHODS.get(method, method),
                    np.array(horizons, dtype=np.float64),
                    [np.array(list(table.of(setting, N, method, metric).values())) for N in horizons],
                )
                for method in methods
            )
            charts.append(_chart(f"{setting.learner}: {name}", "rounds N", name, series, (), log_x=True))
    if not charts:
        return None
    d, K = settings[0].d, settings[0].K
    caption = (
        f"Both metrics against the number of rounds for d = {d}, K = {K}: mean over {_seeds(table, shown)} seeds, with "
        "the 95% t-interval of the mean as a band, on logarithmic axes. The oracle picks its alpha seed by seed by "
        "looking at the truth, so it profits from luck; the best single alpha is one for all seeds at each N."
    )
    title = f"Figure 2: error against the number of rounds, d = {d}, K = {K}"
    return PaperFigure(name=f"figure2-d{d}-K{K}", title=title, caption=caption, charts=tuple(charts))


def _diagnostics(rows: list[Row]) -> list[PaperFigure]:
    """Appendix A: accuracy along the log."""
    panels: dict[tuple[Setting, int], list[Chart]] = {}
    seeds: dict[tuple[Setting, int], int] = {}
    for kind, title, y_label in (
        ("bin", "Predictability by time bin", "held-out accuracy"),
        ("window", "Late observer by window", "agreement"),
    ):
        for trend in trends(rows, kind):
            key = trend.setting, trend.N
            panels.setdefault(key, []).append(_trend(trend, title, y_label))
            seeds[key] = len(trend.accuracies)
    figures = []
    for number, ((setting, N), charts) in enumerate(panels.items()):
        caption = (
            f"{setting}, N = {N:,}. How well an observer fitted within a stretch of the log predicts the picks that it "
            "was not fitted to, and how well one fitted to the last 30% of the log agrees with the picks in each "
            "window, those that it was fitted to included. Mean over "
            f"{seeds[setting, N]} seeds at the middle of the stretch, with the 95% t-interval."
        )
        name = f"appendixA-{setting.key}-N{N}" if number else "appendixA"
        title = "Appendix A: do the learner's picks settle?"
        figures.append(PaperFigure(name=name, title=title, caption=caption, charts=tuple(charts)))
    return figures


def _trend(trend: Trend, title: str, y_label: str) -> Chart:
    series = _series("mean and 95% interval", (trend.starts + trend.stops) / 2, list(trend.accuracies.T))
    return Chart(title=title, x_label="round", y_label=y_label, series=(series,))


def _series(label: str, x: Vector, samples: Sequence[Vector]) -> Series:
    """Mean and interval of each sample; a gap where there is none."""
    found = [mean(sample) if len(sample) else None for sample in samples]
    y, low, high = (
        np.array([math.nan if estimate is None else getattr(estimate, end) for estimate in found])
        for end in ("value", "low", "high")
    )
    return Series(label, x, y, low=low, high=high)


def _level(label: str, sample: Sequence[float]) -> tuple[Level, ...]:
    if not sample:
        return ()
    found = mean(sample)
    if math.isnan(found.low):
        return (Level(label, found.value),)
    return (Level(label, found.value, low=found.low, high=found.high),)


def _chart(
    title: str,
    x_label: str,
    y_label: str,
    series: tuple[Series, ...],
    levels: tuple[Level, ...],
    *,
    log_x: bool = False,
) -> Chart:
    """Logarithmic in y where every mean is positive; a band that reaches down to zero is left out there."""
    chart = Chart(title=title, x_label=x_label, y_label=y_label, series=series, levels=levels, log_x=log_x)
    bare = replace(
        chart,
        series=tuple(replace(one, low=None, high=None) for one in series),
        levels=tuple(Level(level.label, level.y) for level in levels),
    )
    if not (y_values(bare) > 0).all():
        return chart
    return replace(
        chart,
        series=tuple(map(_above_zero, series)),
        levels=tuple(level if level.low is None or level.low > 0 else Level(level.label, level.y) for level in levels),
        log_y=True,
    )


def _above_zero(series: Series) -> Series:
    if series.low is None or series.high is None:
        return series
    kept = series.low > 0
    return replace(series, low=np.where(kept, series.low, np.nan), high=np.where(kept, series.high, np.nan))


def _seeds(table: Measurements, settings: Sequence[Setting]) -> str:
    """How many, as a number or a range."""
    counts = [
        len(table.of(setting, N, method, metric))
        for setting in settings
        for N in table.horizons(setting)
        for method in table.methods(setting, N)
        for metric in METRICS
    ]
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _row(
    chart: Chart, kind: str, label: str, x: float | None, y: float, low: float | None, high: float | None
) -> dict[str, str | float | None]:
    values = {"x": x, "y": y, "low": low, "high": high}
    known = {name: None if value is None or math.isnan(value) else value for name, value in values.items()}
    return {"panel": chart.title, "kind": kind, "label": label} | known
