"""Every claim of the paper with a verdict computed from the two tables, and the files that say so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import get_args

from onlooker.experiments.claim import Claim, Verdict
from onlooker.experiments.diagnostic_claims import diagnostic_claims
from onlooker.experiments.measurements import Measurements, Row
from onlooker.experiments.observer_claims import observer_claims

__all__ = ["Claim", "claims", "claims_json", "claims_markdown", "interval", "number", "tally"]


def claims(results: Iterable[Row], diagnostics: Iterable[Row]) -> tuple[Claim, ...]:
    """Judge every claim that the tables have rows for: each claim, followed by its parts.

    Examples
    --------
    >>> bins = [
    ...     {"learner": "LinUCB", "d": 50, "K": 200, "N": 10_000, "seed": seed, "kind": "bin", "index": i}
    ...     | {"start": 1000 * i, "stop": 1000 * (i + 1), "accuracy": 0.5 + 0.014 * i + 0.001 * (seed * i % 3)}
    ...     for seed in range(6)
    ...     for i in range(10)
    ... ]
    >>> for claim in claims([], bins):
    ...     print(claim.key, claim.verdict)
    6-spearman holds
    6-late-bins holds
    """
    return (*observer_claims(Measurements(results)), *diagnostic_claims(diagnostics))


def claims_json(claims: Sequence[Claim]) -> str:
    """Write the claims for machines: the same claims give the same bytes."""
    return json.dumps([asdict(claim) for claim in claims], indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Write the verdict table, then its parts panel by panel: the same claims give the same bytes.

    Examples
    --------
    >>> claim = Claim(key="5-rate", text="It falls", paper="-1/2", ours=-0.91, low=-1.0, high=-0.8, verdict="holds")
    >>> print(claims_markdown([claim]))
    # The paper's claims
    <BLANKLINE>
    1 claim. Holds: 1; does not hold: 0; inconclusive: 0. Intervals are 95%, over seeds.
    <BLANKLINE>
    | claim | paper | ours | interval | verdict | detail |
    |---|---|---|---|---|---|
    | It falls | -1/2 | -0.9100 | -1.000 to -0.8000 | **holds** |  |
    <BLANKLINE>
    """
    whole = [claim for claim in claims if claim.part_of is None]
    parts = [claim for claim in claims if claim.part_of is not None]
    blocks = ["# The paper's claims", f"{tally(claims)} Intervals are 95%, over seeds.", _table(whole)]
    if parts:
        blocks += ["## Panel by panel", _table(parts)]
    return "\n\n".join(blocks) + "\n"


def tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts, parts left out."""
    verdicts = [claim.verdict for claim in claims if claim.part_of is None]
    counts = (f"{verdict}: {verdicts.count(verdict)}" for verdict in get_args(Verdict))
    return f"{len(verdicts)} claim{'s' * (len(verdicts) != 1)}. {'; '.join(counts).capitalize()}."


def number(value: float | str | None) -> str:
    """Write a measured value.

    Examples
    --------
    >>> number(0.94321), number(0.012341), number("12 of 12 panels"), number(None)
    ('0.9432', '0.0123', '12 of 12 panels', '\u2013')
    """
    if value is None:
        return "\u2013"
    if isinstance(value, str):
        return value
    return f"{value:.3f}" if abs(value) >= 1 else f"{value:.4f}" if abs(value) >= 0.001 else f"{value:.3g}"


def interval(claim: Claim) -> str:
    """Write a claim's interval."""
    return "\u2013" if claim.low is None or claim.high is None else f"{number(claim.low)} to {number(claim.high)}"


def _table(claims: Sequence[Claim]) -> str:
    rows = [["claim", "paper", "ours", "interval", "verdict", "detail"], ["---"] * 6]
    for claim in claims:
        cells = claim.text, claim.paper, number(claim.ours), interval(claim), f"**{claim.verdict}**", claim.detail
        rows.append([cell.replace("|", "\\|") for cell in cells])
    return "\n".join("|---" * 6 + "|" if row[0] == "---" else f"| {' | '.join(row)} |" for row in rows)
