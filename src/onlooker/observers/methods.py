"""Every method by the name that commands and benchmarks call it, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onlooker.base.checks import did_you_mean
from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import is_even_sample
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
    sets: bool = False
    """Whether it takes picks that are known only to a set."""
    uneven: bool = False
    """Whether it takes offers that were sampled unevenly."""

    def takes(self, log: BanditLog) -> bool:
        """Whether it takes what a log knows only in part.

        Examples
        --------
        >>> log = BanditLog([[1.0], [2.0], [3.0]], [0, 3], None, possible=[1, 1, 0])
        >>> [method.name for method in METHODS if method.takes(log)]
        ['naive', 'rule', 'auto', 'tracking', 'dynamic']
        """
        if log.n_sets and not self.sets:
            return False
        return self.uneven or log.offer_probability is None or is_even_sample(log.offer_probability, log.offsets)


METHODS = (
    Method("naive", "suffix imitation, naive", lambda: SuffixImitation(burn_in="naive"), sets=True, uneven=True),
    Method("rule", "suffix imitation, rule N^0.9", lambda: SuffixImitation(burn_in="rule"), sets=True, uneven=True),
    Method("auto", "suffix imitation, auto", lambda: SuffixImitation(burn_in="auto"), sets=True, uneven=True),
    Method("tracking", "tracking", TrackingObserver, sets=True),
    Method("dynamic", "dynamic imitation", DynamicImitation, sets=True),
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
