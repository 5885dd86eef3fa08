"""What the bounds take: sizes of a problem, probabilities, the rounds that are left after the burn-in."""

from __future__ import annotations

from typing import Any

from onlooker.checks import as_number, as_whole
from onlooker.errors import InputError

LARGEST = 2**63 - 1
"""Of a count: beyond it floats would overflow where counts are multiplied."""


def as_count(value: Any, name: str, *, least: int = 1, most: int = LARGEST) -> int:
    """Give `value` as a whole number from `least` to `most`."""
    count = as_whole(value, name, least=least)
    if count > most:
        raise InputError(f"{name} is {count}: pass a whole number of at most {most}")
    return count


def as_share(value: Any, name: str) -> float:
    """Give `value` as a probability or a share, from 0 to 1."""
    return as_number(value, name, least=0.0, most=1.0)


def as_delta(value: Any) -> float:
    """Give `value` as the probability with which a bound may fail, above 0 and at most 1."""
    return as_number(value, "delta", above=0.0, most=1.0)


def suffix_length(n_rounds: Any, burn_in: Any) -> int:
    """Rounds that are left to imitate, L = N - T, at least one.

    Examples
    --------
    >>> suffix_length(10_000, 3981)
    6019
    """
    total, thrown = as_count(n_rounds, "n_rounds"), as_count(burn_in, "burn_in", least=0)
    if thrown >= total:
        raise InputError(f"burn_in is {thrown} of {total} rounds: leave at least one round to imitate")
    return total - thrown
