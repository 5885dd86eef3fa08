"""Text that is safe to show: names come from other people's data."""

from onlooker.one_line import safe


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
