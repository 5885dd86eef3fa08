"""Everything in the library that writes files: each writes into a folder, an old version of its files or a new one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
from matplotlib.figure import Figure

from onlooker import BanditLog, Environment, LinearPolicy, LinUCB, TrackingObserver, simulate, write_log, write_report
from onlooker.base.files import write_bytes, write_text
from onlooker.experiments.ledger import Job, open_ledger
from onlooker.experiments.paper_figures import PaperFigure
from onlooker.experiments.tables import write_csv
from onlooker.formats import FORMATS, write_parts
from onlooker.report.page import Page
from onlooker.report.plots import Chart, Series, sheet_png, to_png

Writer = Callable[[Path, int], None]
OLD, NEW = 0, 1


@cache
def log(version: int) -> BanditLog:
    """Rounds of four arms; as text, more than fits into a buffer."""
    values = np.random.default_rng(version)
    return BanditLog.from_dense(
        values.normal(size=(150 + 30 * version, 4, 5)), values.integers(0, 4, 150 + 30 * version)
    )


@cache
def chart(version: int) -> Chart:
    series = Series("a", [0, 1, 2], [version, 2, 1])
    return Chart(title=f"version {version}", x_label="x", y_label="y", series=(series,))


@cache
def tracked(version: int) -> TrackingObserver:
    return TrackingObserver().fit(simulate(Environment(3, 5, seed=1), LinUCB(), n_rounds=300 + 100 * version).log)


@contextmanager
def small(charts, **_) -> Iterator[Figure]:
    """A few dots in place of a drawing, which takes its time and is not the matter here."""
    figure = Figure(figsize=(1, 1), dpi=20)
    figure.text(0, 0.5, charts[0].title)
    yield figure


def rows(version: int) -> list[dict[str, object]]:
    return [{"name": f"row {number}", "value": number / (version + 3)} for number in range(1000)]


def policy(folder: Path, version: int) -> None:
    LinearPolicy(np.arange(1.0, 900.0) / (version + 7)).save(folder / "policy.json")


def drawing(write: Writer, folder: Path, version: int) -> None:
    with (
        mock.patch("onlooker.report.plots.draw._drawn", small),
        mock.patch("onlooker.report.plots.sheet._drawn", small),
    ):
        write(folder, version)


def figure(folder: Path, version: int) -> None:
    PaperFigure(name="figure", title="A figure", caption="What is seen.", charts=(chart(version),)).save(folder)


def experiment(folder: Path, version: int) -> None:
    with open_ledger(folder / "run", {"schema": 1}) as ledger:
        ledger.write(Job("first", '{"seed": 0}'), f"[{version}]" if version else "[]")


WRITERS: dict[str, Writer] = {
    "text": lambda folder, version: write_text(folder / "a.txt", f"{version}\n" * 20_000),
    "bytes": lambda folder, version: write_bytes(folder / "a.bin", bytes([version]) * 50_000),
    "policy": policy,
    "state of tracking": lambda folder, version: tracked(version).save(folder / "state.json"),
    "table": lambda folder, version: write_csv(folder / "table.csv", rows(version), ["name", "value"]),
    "chart": partial(drawing, lambda folder, version: to_png(chart(version), folder / "chart.png")),
    "sheet": partial(drawing, lambda folder, version: sheet_png([chart(version)], folder / "sheet.png")),
    "figure": partial(drawing, figure),
    "report": lambda folder, version: write_report(Page(title=f"{version}" * 20_000), folder / "report.html"),
    "experiment": experiment,
    "parts of a log": lambda folder, version: write_parts(
        [log(version)[:100], log(version)[100:]], folder / "parts.parquet"
    ),
    "long Parquet": lambda folder, version: write_parts([log(version)], folder / "long.parquet", long=True),
}


def _log_writer(suffix: str, folder: Path, version: int) -> None:
    write_log(log(version), folder / f"log{suffix}")


for one in FORMATS:
    if one.write is not None:
        WRITERS[f"log{one.suffixes[0]}"] = partial(_log_writer, one.suffixes[0])
