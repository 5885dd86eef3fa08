"""Every method by the name that commands and benchmarks call it, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onlooker.base.checks import did_you_mean
from onlooker.base.errors import InputError
from onlooker.observers.base import Observer
from onlooker.observers.dynamic_imitation import DynamicImitation
from onlooker.observers.earlier.bayesian_icb import BayesianICB
from onlooker.observers.earlier.block_imitation import BlockImitation
from onlooker.observers.earlier.change_point import ChangePointImitation
from onlooker.observers.earlier.ibcb import IBCB
from onlooker.observers.earlier.nonparametric_icb import NonparametricICB
from onlooker.observers.earlier.ranked_blocks import RankedBlocks
from onlooker.observers.suffix_imitation import SuffixImitation
from onlooker.observers.tracking_observer import TrackingObserver


@dataclass(frozen=True)
class Method:
    """A way to observe."""

    name: str
    """To call it by."""
    title: str
    """In tables and charts."""
    make: Callable[[], Observer]
    """Gives a fresh observer."""
    quick: bool = True
    """Whether it takes seconds on a log of 10,000 rounds, 50 arms and 20 features."""


METHODS = (
    Method("naive", "suffix imitation, naive", lambda: SuffixImitation(burn_in="naive")),
    Method("rule", "suffix imitation, rule N^0.9", lambda: SuffixImitation(burn_in="rule")),
    Method("auto", "suffix imitation, auto", lambda: SuffixImitation(burn_in="auto")),
    Method("tracking", "tracking", TrackingObserver),
    Method("dynamic", "dynamic imitation", DynamicImitation),
    Method("ibcb", "IBCB-style, hinge", IBCB),
    Method("ibcb-logit", "IBCB-style, logit", lambda: IBCB(loss="logit", alpha=0.0)),
    Method("blocks", "last of 5 blocks", BlockImitation),
    Method("change-point", "after one change point", ChangePointImitation),
    Method("ranked", "ranked blocks (T-REX-style)", RankedBlocks),
    Method(
        "zero-one", "suffix imitation, 0-1 loss", lambda: SuffixImitation(burn_in="rule", loss="zero_one"), quick=False
    ),
    Method("bayesian", "Bayesian ICB", BayesianICB, quick=False),
    Method("nonparametric", "nonparametric ICB", NonparametricICB, quick=False),
)
"""In the order of tables."""


def find_methods(names: Iterable[str]) -> tuple[Method, ...]:
    """The methods of these names, in their order, each once.

    Examples
    --------
    >>> [method.title for method in find_methods(["tracking", "auto", "tracking"])]
    ['tracking', 'suffix imitation, auto']
    """
    known = {method.name: method for method in METHODS}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"there is no method {name!r}: use {', '.join(known)}" + (hint and f"; {hint}"))
    return tuple(known[name] for name in dict.fromkeys(names))
