"""Every page and drawing that can be made, with given texts in every place where a text can come from outside."""

from collections.abc import Sequence
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa

from onlooker import BanditLog, report_page
from onlooker.base.text import start_of
from onlooker.experiments.claims import Claim
from onlooker.experiments.paper_figures import PaperFigure
from onlooker.experiments.reproduce import paper_page
from onlooker.report.log_analysis import analyse
from onlooker.report.log_page import page_of
from onlooker.report.page import Column, Input, Page, Section, Source, Table
from onlooker.report.plots import Chart, DotChart, IntervalChart, Level, Mark, Series, comparison_charts, to_svg

ROUNDS, ARMS = 240, 3


def chunks(texts, size):
    return [texts[first : first + size] for first in range(0, len(texts), size)]


def log_of(names):
    """A log whose features, rounds and arms have these names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROUNDS, ARMS, len(names)))
    chosen = (X[:, :, 0] + rng.gumbel(size=(ROUNDS, ARMS))).argmax(axis=1)
    rounds = np.array([f"{names[t % len(names)]} {t}" for t in range(ROUNDS)])
    arms = np.array([names[row % len(names)] for row in range(ROUNDS * ARMS)])
    ids = {"round_ids": rounds, "arm_ids": arms}
    return BanditLog(X.reshape(ROUNDS * ARMS, -1), np.arange(ROUNDS + 1) * ARMS, chosen, feature_names=names, **ids)


@cache
def _found():
    """What a log without any such text tells."""
    return analyse(log_of(["a", "b"]))


def features(names):
    return report_page(log_of(names))


def categories(names):
    """Columns of text: the first name is the column's, the others are its levels."""
    rng = np.random.default_rng(0)
    known = sorted(names)
    columns, score = {}, np.zeros(ROUNDS * ARMS)
    for column, *levels in chunks(known, 26):
        drawn = rng.permutation(np.arange(ROUNDS * ARMS) % len(levels))
        columns[column] = [levels[i] for i in drawn]
        score += drawn / len(levels)
    picks = (score + rng.gumbel(size=len(score))).reshape(ROUNDS, ARMS).argmax(axis=1)
    chosen = (np.arange(ROUNDS * ARMS) % ARMS == np.repeat(picks, ARMS)).astype(int)
    table = pa.table({"the round": np.repeat(np.arange(ROUNDS), ARMS), "the pick": chosen, **columns})
    log = BanditLog.from_frame(table, round="the round", chosen="the pick", categories=list(columns))
    return report_page(log)


def learners(names):
    """Several learners in one file, told apart by a column."""
    apart = chunks(names, -(-len(names) // 2))
    return page_of({" ".join(part): _found() for part in apart}, Source(by=" ".join(names[::-1])))


def sources(names):
    """Files, and what was said and typed while they were read."""
    joined = " ".join(names)
    files = tuple(Input(file=name, sha256=64 * "0", size=1) for name in names)
    said = {
        "inputs": files,
        "assumed": tuple(names),
        "warnings": tuple(names),
        "command": joined,
        "saving": f"$ {joined}",
    }
    return page_of({"": _found()}, Source(name=joined, **said))


def charts(names):
    """Titles, labels, legends, marks, captions, heads and cells."""
    x = np.arange(1.0, len(names) + 1)
    all_names = (
        DotChart(title=names[0], x_label=names[1], y_label=names[2], names=names, values=x, level=Level(names[3], 2.0)),
        IntervalChart(
            title=names[0], x_label=names[1], y_label=names[2], names=names, estimates=x, low=x - 1, high=x + 1
        ),
    )
    lines = [_lines(part) for part in chunks(names, 20) if len(part) > 4]
    sections = [
        Section(title=name, text=start_of(name, 10_000), code=name, charts=(chart,))
        for name, chart in zip(names, (*all_names, *lines), strict=False)
    ]
    head = Table((Column(names[4]), Column(names[5])), tuple((name, name) for name in names), caption=names[6])
    sections.append(Section(title=names[-1], table=head))
    return Page(title=names[7], lead=start_of(names[8], 10_000), warnings=names, sections=sections, footer="made")


def _lines(texts):
    title, x_label, y_label, *labels, level = texts
    series = [Series(label, [0, 1, 2], [number, 2, 1]) for number, label in enumerate(labels)]
    marks = [Mark(label, number) for number, label in enumerate(labels)]
    return Chart(title=title, x_label=x_label, y_label=y_label, series=series, marks=marks, levels=[Level(level, 1.5)])


def paper(names):
    said = [{"text": name, "paper": name, "ours": name, "detail": name} for name in names]
    claims = [Claim(key=str(number), verdict="holds", **texts) for number, texts in enumerate(said)]
    figure = PaperFigure(name="figure", title=names[0], caption=start_of(names[1], 10_000), charts=(_lines(names[:7]),))
    return paper_page(claims, [figure], dict.fromkeys(names, names[2]) | {"command": " ".join(names)})


PAGES = {
    "features": features,
    "categories": categories,
    "learners": learners,
    "sources": sources,
    "charts": charts,
    "paper": paper,
}
"""By what the texts are in them."""


def comparison_drawing(names):
    """What `onlooker compare --chart` draws."""
    measured = {"direction_error": 0.1, "predictive_regret": None, "agreement": 0.5, "seconds": None}
    return to_svg(comparison_charts([{"name": name, **measured} for name in names], reference=names[0]))


class Skeleton(HTMLParser):
    """Elements with the names of their attributes, and the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self._text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._flush()
        self.elements.append((tag, *sorted(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  the parser's signature
        self._flush()

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_comment(self, data: str) -> None:  # noqa: ARG002  the parser's signature
        self.elements.append(("a comment",))

    def _flush(self) -> None:
        self.texts.append("".join(self._text))
        self._text.clear()

    @property
    def page(self) -> list[tuple[str, ...]]:
        """Elements outside of drawings: how many ticks and glyphs these have depends on the width of names."""
        inside = {"g", "defs", "path", "use", "clippath", "clipPath", "rect", "text"}
        return [("svg",) if element[0] == "svg" else element for element in self.elements if element[0] not in inside]
