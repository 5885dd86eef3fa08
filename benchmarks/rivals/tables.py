"""From the race's results to tables and a chart."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rivals.methods import FITS, SIMULATIONS, Method
from rivals.race import CLOSE, Result

METHODS = {method.name: method for method in (*FITS, *SIMULATIONS)}
KINDS = ("onlooker", "floor", "by hand", "choice library", "bandit library")


def fit_table(results: Sequence[Result]) -> str:
    """Seconds to the same objective, beside onlooker's."""
    ours = _ours(results)
    heads = [
        "method",
        "version",
        "seconds",
        "times onlooker's",
        "processor",
        "above the minimum",
        "error of theta",
        "memory",
    ]
    rows = []
    for result in _in_order(results):
        method = METHODS[result["method"]]
        start = [_named(method), method.version]
        if not result["runs"]:
            rows.append([*start, result["reason"], "", "", "", "", ""])
            continue
        seconds = _seconds(result)
        excess = max(run["excess"] for run in result["runs"])
        far = "" if excess <= CLOSE else " (never closer)"
        rows.append(
            [
                *start,
                spread(seconds),
                _round(statistics.median(seconds) / ours[0]) if ours else "",
                f"{_round(statistics.median(run['processor'] for run in result['runs']))} s",
                f"{max(excess, 0.0):.0e}{far}",
                f"{max(run['error'] for run in result['runs']):.0e}",
                _size(result["runs"]),
            ]
        )
    return markdown([*heads, "remarks"], _with_notes(rows, results))


def simulation_table(results: Sequence[Result]) -> str:
    """Time of one round, beside onlooker's whole simulation and beside its learner on arms that are given."""
    ours = _ours(results)
    heads = ["method", "version", "rounds", "a round", "times `simulate`", "times its learner", "same picks", "remarks"]
    rows = []
    for result in _in_order(results):
        method = METHODS[result["method"]]
        start = [_named(method), method.version]
        if not result["runs"]:
            rows.append([*start, "", result["reason"], "", "", ""])
            continue
        seconds, last = _seconds(result), result["runs"][-1]
        rows.append(
            [
                *start,
                f"{last['rounds']:,}",
                spread(seconds),
                *([_round(statistics.median(seconds) / own) for own in ours] if len(ours) == 2 else ["", ""]),
                f"{last['same']:.1%}" if method.shared else "",
            ]
        )
    return markdown(heads, _with_notes(rows, results))


def spread(seconds: Sequence[float]) -> str:
    """Median with the least and the most, in a unit that suits.

    >>> spread([0.5, 0.25, 1.0]), spread([9e-05, 8e-05, 8.5e-05])
    ('0.5 s (0.25 to 1)', '85 µs (80 to 90)')
    """
    middle = statistics.median(seconds)
    scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")) if middle * s >= 0.2 or u == "µs")
    low, high = min(seconds) * scale, max(seconds) * scale
    return f"{_round(middle * scale)} {unit} ({_round(low)} to {_round(high)})"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def chart(panels: dict[str, Sequence[Result]], path: Path) -> None:
    """A dot for the median of every method and a line from the least to the most, on a logarithmic axis."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    from onlooker.report.plots.axes import tick
    from onlooker.report.plots.draw import looks, write_png
    from onlooker.report.plots.style import LIGHT, MARKERS

    drawn = {title: [result for result in _in_order(results) if result["runs"]] for title, results in panels.items()}
    with looks(**{"font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9}):
        heights = [len(results) for results in drawn.values()]
        figure = Figure(figsize=(7, 0.9 * len(drawn) + 0.24 * sum(heights)), dpi=200, layout="constrained")
        places = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (title, results) in zip(places, drawn.items(), strict=True):
            for place, result in enumerate(sorted(results, key=lambda r: statistics.median(_seconds(r)))):
                seconds, method = _seconds(result), METHODS[result["method"]]
                number = KINDS.index(method.kind)
                look = {"color": LIGHT[number], "marker": MARKERS[number]}
                axes.hlines(place, min(seconds), max(seconds), color=LIGHT[number], linewidth=1.4)
                axes.plot(statistics.median(seconds), place, linestyle="none", label=method.kind, **look)
            names = sorted(results, key=lambda r: statistics.median(_seconds(r)))
            axes.set_yticks(range(len(names)), [result["method"].replace("`", "") for result in names])
            axes.set(xscale="log", xlabel="seconds, logarithmic scale", ylim=(len(names) - 0.4, -0.6))
            axes.set_title(title, loc="left")
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(LogLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(tick))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid(visible=True, axis="x")
            axes.grid(visible=False, axis="y")
        entries = {label: handle for a in places for handle, label in zip(*a.get_legend_handles_labels(), strict=True)}
        kinds = [kind for kind in KINDS if kind in entries]
        figure.legend([entries[kind] for kind in kinds], kinds, loc="outside lower center", ncols=len(kinds))
        write_png(figure, path)


def _in_order(results: Sequence[Result]) -> list[Result]:
    """Fastest first; those without a time at the end."""
    return sorted(results, key=lambda result: statistics.median(_seconds(result)) if result["runs"] else float("inf"))


def _seconds(result: Result) -> list[float]:
    """Seconds of every run, of one round where rounds are counted."""
    return [run["seconds"] / run.get("rounds", 1) for run in result["runs"]]


def _ours(results: Sequence[Result]) -> list[float]:
    """Medians of onlooker's own methods, in the order of the race."""
    return [
        statistics.median(_seconds(result))
        for result in results
        if METHODS[result["method"]].kind == "onlooker" and result["runs"]
    ]


def _named(method: Method) -> str:
    return f"**{method.name}**" if method.kind == "onlooker" else method.name


def _size(runs: Sequence[dict[str, Any]]) -> str:
    sizes = [run["memory"] for run in runs if run["memory"] is not None]
    return f"{max(sizes) / 1e6:,.0f} MB" if sizes else ""


def _with_notes(rows: Sequence[list[str]], results: Sequence[Result]) -> list[list[str]]:
    noted = []
    for row, result in zip(rows, _in_order(results), strict=True):
        method = METHODS[result["method"]]
        free = "" if method.penalised else "no penalty, against that minimum"
        noted.append([*row, "; ".join(part for part in (method.note, free) if part)])
    return noted


def _round(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.3g}"
