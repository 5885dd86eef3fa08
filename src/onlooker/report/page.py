"""A page as plain data, and its rendering as one HTML file that opens offline, without scripts."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

from onlooker.report.plots import AnyChart, to_svg
from onlooker.report.plots.style import DARK, LIGHT, one_line, showable
from onlooker.report.table import Table


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """A title, a few sentences for whoever reads no further, and the sections."""

    title: str
    """Heading, and name of the browser's tab."""
    lead: str = ""
    """The answer in short: paragraphs, with an empty line between them."""
    warnings: tuple[str, ...] = ()
    """What to know before relying on it, a sentence each."""
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
    >>> from onlooker.report.table import Column, Table
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
    environment.filters |= {"paragraphs": _paragraphs, "one_line": lambda text: one_line(text, 200)}
    style = environment.get_template("style.css.j2").render(colours=list(zip(LIGHT, DARK, strict=True)))

    def draw(chart: AnyChart, prefix: str) -> Markup:
        return Markup(to_svg(chart, titles=False, prefix=prefix))  # noqa: S704 - the drawing escapes its texts

    return environment.get_template("page.html.j2").render(
        page=page,
        style=Markup(style),  # noqa: S704 - it holds no text but ours
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        draw=draw,
        behind=Table.behind,
    )


def _finalize(value: object) -> object:
    """Make every text that enters the page showable; markup passes, as its parts were."""
    return showable(value) if type(value) is str else value


def _paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part]
