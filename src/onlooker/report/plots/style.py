"""Text that is safe to show: names come from other people's data."""

from onlooker.base.text import safe

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#595959")
"""Okabe and Ito's, in the order of contrast with white, and a grey."""

DARK = ("#56b4e9", "#f5853f", "#2bbf94", "#e3a0c4", "#c5b8ff", "#f0c04a", "#b8b8b8")
"""For the same series on a dark page: lighter, in the same order."""

INK = "#000000"
"""Axes, text, levels and marks; the page's own text colour where there is a page."""

DASHES = ("-", (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 1, 2, 1)))
"""Series differ in these as well, for print without colour."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Shapes of the points."""


def showable(text: str) -> str:
    r"""Replace what a page cannot show, or what would disturb the text around it, by the replacement character.

    Examples
    --------
    >>> showable("caf\u00e9 \u202ederit")
    'café �derit'
    """
    return safe(text, "\ufffd")


def one_line(text: str, limit: int) -> str:
    r"""Put text on one line of at most `limit` characters.

    Examples
    --------
    >>> one_line("predictive\n  regret of the learner", limit=20)
    'predictive regret o…'
    """
    line = " ".join(showable(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def ends_of(text: str, limit: int) -> str:
    """Put text on one line of at most `limit` characters, cut before its end, as names often differ there.

    Examples
    --------
    >>> ends_of("weight_of_the_parcel_in_kg", limit=15), ends_of("weight", limit=15)
    ('weight_of…in_kg', 'weight')
    """
    line = " ".join(showable(text).split())
    last = limit // 3
    return line if len(line) <= limit else line[: limit - 1 - last] + "…" + line[len(line) - last :]


def two_lines(text: str, limit: int) -> str:
    r"""Put text on one line of at most `limit` characters, or on two if there is a space to break it at.

    Examples
    --------
    >>> two_lines("suffix imitation, oracle in hindsight", limit=28), two_lines("tracking", limit=28)
    ('suffix imitation, oracle in\nhindsight', 'tracking')
    """
    line = " ".join(showable(text).split())
    space = line.rfind(" ", 0, limit + 1)
    if len(line) <= limit or space < 1 or len(line) - space - 1 > limit:
        return ends_of(line, limit)
    return f"{line[:space]}\n{line[space + 1 :]}"
