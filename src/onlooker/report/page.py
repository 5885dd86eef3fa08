"""A page as plain data, where it comes from, and its rendering as one HTML file that opens offline, without scripts."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.text import showable, start_of
from onlooker.base.version import __version__
from onlooker.logs.log import BanditLog
from onlooker.report.plots import AnyChart, to_svg
from onlooker.report.plots.style import DARK, LIGHT

Cell = str | float | bool | None

MISSING = "\u2013"
"""Written where there is no value."""


@dataclass(frozen=True)
class Column:
    """Heading of a column, and how its cells are written."""

    title: str
    """Heading."""
    format: str | None = None
    """Python's format for the numbers, such as ".4f"; None: four digits, whole numbers in full."""
    align: Literal["left", "right"] = "left"
    """Right for numbers, so that their digits stand under each other."""
    wrap: bool = False
    """For sentences: broken into lines, where other cells stay on one."""

    def __post_init__(self) -> None:
        if self.align not in {"left", "right"}:
            raise InputError(f"column {self.title!r}: align {self.align!r} is not known: pass 'left' or 'right'")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns and rows, checked to fit each other.

    Examples
    --------
    >>> table = Table(
    ...     columns=(Column("observer"), Column("burn-in", align="right"), Column("error", ".3f", align="right")),
    ...     rows=(("naive", 0, 0.0761), ("rule", 3981, 0.0603), ("learner", None, 0.0518)),
    ...     highlight=1,
    ... )
    >>> table.text()[1]
    ('rule', '3,981', '0.060')
    >>> table.text()[2] == ("learner", MISSING, "0.052")
    True
    """

    columns: tuple[Column, ...]
    """At least one."""
    rows: tuple[tuple[Cell, ...], ...]
    """As many cells each as there are columns; None or NaN where there is no value."""
    caption: str = ""
    """What the table shows."""
    highlight: int | None = None
    """The row to point out, counted from 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(map(_plain, row)) for row in self.rows))
        if not self.columns:
            raise InputError("a table needs at least one column")
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(f"row {number} has {len(row)} cells for {len(self.columns)} columns")
        if self.highlight is not None and not 0 <= self.highlight < len(self.rows):
            raise InputError(f"row {self.highlight} cannot be highlighted: the table has {len(self.rows)} rows")
        # An unfit format is found here, where it was given, rather than when the page is rendered.
        self.text()

    @classmethod
    def of(cls, titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
        """Make a table of which columns of numbers are aligned right."""
        kept = tuple(tuple(map(_plain, row)) for row in rows)
        numeric = [all(not isinstance(row[i], str) for row in kept if i < len(row)) for i in range(len(titles))]
        columns = (
            Column(title, align="right" if number else "left") for title, number in zip(titles, numeric, strict=True)
        )
        return cls(tuple(columns), kept)

    @classmethod
    def behind(cls, chart: AnyChart) -> Table:
        """Take the numbers that a chart draws."""
        return cls.of(*chart.rows())

    def text(self) -> tuple[tuple[str, ...], ...]:
        """Write every cell."""
        return tuple(tuple(map(_write, row, self.columns)) for row in self.rows)


def _plain(cell: Cell) -> Cell:
    return cell.item() if isinstance(cell, np.generic) else cell


def _write(cell: Cell, column: Column) -> str:
    if cell is None:
        return MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    if math.isnan(cell):
        return MISSING
    if column.format is None:
        return _number(cell)
    try:
        return format(cell, column.format)
    except ValueError as error:
        raise InputError(
            f"column {column.title!r}: {cell!r} cannot be written as {column.format!r} ({error})"
        ) from error


def _number(value: float) -> str:
    """Four digits, and no exponent where a reader can do without.

    Examples
    --------
    >>> [_number(value) for value in (3981, 0.05, 0.000984321, 1234.5678, 0.0, 2.5e-9, float("inf"))]
    ['3,981', '0.05', '0.0009843', '1,235', '0', '2.5e-09', 'inf']
    """
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0 or not math.isfinite(value) or not 1e-5 <= abs(value) < 1e9:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """A heading with text, lines to copy, charts and a table under it, in that order."""

    title: str
    """Heading."""
    text: str = ""
    """Paragraphs, with an empty line between them."""
    code: str = ""
    """Lines to copy, shown as they are."""
    charts: tuple[AnyChart, ...] = ()
    """Side by side where there is room; the numbers of each stand behind it."""
    table: Table | None = None
    """Shown in full, or behind a line to click."""
    folded: bool = False
    """Whether the table stands behind a line to click: for long ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "charts", tuple(self.charts))


@dataclass(frozen=True, kw_only=True)
class Card:
    """One answer that reads at a glance."""

    question: str
    """What it answers."""
    answer: str
    """A word, or a number."""
    detail: str = ""
    """One line below it."""
    alert: bool = False
    """Whether the answer asks for care."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """A title, a short summary, and the sections."""

    title: str
    """Heading, and name of the browser's tab."""
    cards: tuple[Card, ...] = ()
    """The answers at a glance, side by side."""
    lead: str = ""
    """The answer in short: paragraphs, with an empty line between them."""
    warnings: tuple[str, ...] = ()
    """Caveats, one sentence each."""
    sections: tuple[Section, ...] = ()
    """In reading order."""
    footer: str = ""
    """How the page was made."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "warnings", tuple(self.warnings))
        object.__setattr__(self, "sections", tuple(self.sections))


def render(page: Page) -> str:
    """Write the page as HTML: the same page gives the same bytes.

    Every text is escaped. The page's policy allows its one style sheet and nothing else: no script, no request.

    Examples
    --------
    >>> from onlooker.report.plots import burn_in_curves
    >>> from onlooker.report.page import Column, Table
    >>> charts = burn_in_curves(
    ...     [0.0, 0.5, 0.9, 1.0],
    ...     [0.076, 0.075, 0.060, 0.9],
    ...     [0.0021, 0.0020, 0.0013, 0.2],
    ...     learner_error=0.052,
    ...     learner_regret=0.001,
    ...     marks={"naive": 0.0, "rule": 0.9},
    ... )
    >>> numbers = Column("direction error", ".3f", "right"), Column("agreement", ".1%", "right")
    >>> table = Table((Column("observer"), *numbers), (("naive", 0.076, 0.81), ("rule", 0.060, 0.84)), highlight=1)
    >>> sections = (Section(title="How much to leave out", charts=charts), Section(title="Observers", table=table))
    >>> html = render(Page(title="A demo", lead="The rewards were <hidden>.", sections=sections))
    >>> html.count("<svg"), "&lt;hidden&gt;" in html
    (2, True)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("onlooker.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {"paragraphs": _paragraphs, "one_line": lambda text: start_of(text, 200)}
    style = _style()

    def draw(chart: AnyChart, prefix: str) -> Markup:
        return Markup(to_svg(chart, titles=False, prefix=prefix))  # noqa: S704 - the drawing escapes its texts

    return environment.get_template("page.html.j2").render(
        page=page,
        style=Markup(style),  # noqa: S704 - it holds no text but ours
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        draw=draw,
        behind=Table.behind,
    )


def _style() -> str:
    """The style sheet, with a rule for the colour of every series on a dark page."""
    sheet = resources.files("onlooker.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    kinds = ("stroke", "fill")
    rules = (f'  [{of}="{light}"] {{ {of}: {dark}; }}' for light, dark in zip(LIGHT, DARK, strict=True) for of in kinds)
    return sheet.rstrip("\n").replace("  /* series */", "\n".join(rules))


def _finalize(value: object) -> object:
    """Make every text that enters the page showable; markup passes, as its parts were."""
    return showable(value) if type(value) is str else value


def _paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part]


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file that was read."""

    file: str
    """Its name."""
    sha256: str
    """Hash of its content, in hexadecimal digits."""
    size: int
    """Bytes."""

    @classmethod
    def of(cls, path: str | os.PathLike[str], name: str | None = None) -> Input:
        """Read a file for its hash; `name` is what it is called, where it is a copy.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "log.csv").write_bytes(b"abc")
        ...     found = Input.of(Path(folder, "log.csv"))
        >>> found.file, found.size, found.sha256[:8]
        ('log.csv', 3, 'ba7816bf')
        """
        try:
            with open(path, "rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
                size = content.tell()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return cls(file=name or Path(path).name, sha256=digest, size=size)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a report says about where its log came from."""

    name: str = "the log"
    """What to call it."""
    by: str | None = None
    """The column that names the learner of a row, where there are several."""
    inputs: tuple[Input, ...] = ()
    """Files that were read."""
    assumed: tuple[str, ...] = ()
    """What was assumed about them, a line each."""
    warnings: tuple[str, ...] = ()
    """Warnings while they were read."""
    command: str = ""
    """The command that made the report, as it was typed."""
    saving: str = (
        'from onlooker import SuffixImitation\n\nSuffixImitation(burn_in="auto").fit(log).policy_.save("policy.json")'
    )
    """Lines that save the policy."""


def versions() -> Iterable[tuple[str, str]]:
    """What the figures were made with."""
    return ("onlooker", __version__), ("numpy", np.__version__), ("Python", platform.python_version())


def provenance(source: Source, logs: Mapping[str, BanditLog] | None = None) -> Section:
    """What the page was made from, and with what."""
    rows: list[tuple[str, str]] = []
    for one in source.inputs:
        rows += [("file", one.file), ("its size", f"{one.size:,} bytes"), ("its SHA-256", one.sha256)]
    rows += [("assumed", line) for line in source.assumed]
    rows += [(name or "log", _counted(log)) for name, log in (logs or {}).items()]
    rows += [("command", source.command)] if source.command else []
    rows += list(versions())
    return Section(
        title="Where this comes from",
        text="Nothing in it is random: the same files, command and versions give the same page.",
        table=Table((Column("what"), Column("value", wrap=True)), tuple(rows)),
    )


def _counted(log: BanditLog) -> str:
    fewest, most = int(log.n_arms.min()), int(log.n_arms.max())
    arms = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{log.n_rounds:,} rounds of {arms} {'arm' if most == 1 else 'arms'}, {counted(log.n_features, 'feature')}"


_TERMS = {
    "agreement": "The share of rounds in which a policy picks what the learner picked.",
    "burn-in": (
        "The rounds at the beginning of the log that are discarded before a fit, because the learner was still "
        "exploring."
    ),
    "evidence": "The probability of the picks under a model, averaged over what is unknown about it.",
    "log-odds": "The logarithm of p / (1 - p).",
    "predictability": (
        "The share of picks that a policy predicts correctly when it was fitted to other rounds of the same period."
    ),
    "sandwich covariance": (
        "An estimate of the covariance of the weights from the scatter of the rounds' gradients, which stays valid "
        "where the model is not exactly right."
    ),
}
"""As the glossary in `docs/` explains them."""


def terms_section() -> Section:
    """The terms of the page, a sentence each.

    Examples
    --------
    >>> [term for term, _ in terms_section().table.rows][:2]
    ['agreement', 'burn-in']
    """
    return Section(
        title="Terms", table=Table((Column("term"), Column("meaning", wrap=True)), tuple(_TERMS.items())), folded=True
    )
