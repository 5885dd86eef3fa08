"""The weights of a factored log: which arm, context feature or item feature each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix
from onlooker.logs.arm_ids import places


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """What each weight of a factored log belongs to.

    Examples
    --------
    >>> Crossing(arms=("a", "b"), context=("one", "age")).weight_names
    ('a: one', 'a: age', 'b: one', 'b: age')
    >>> Crossing(items=("price",), context=("one", "age")).weight_names
    ('price', 'one*price', 'age*price')
    """

    arms: tuple[Any, ...] | None = None
    """Ids of the arms, where each has weights of its own."""
    own: tuple[str, ...] = ()
    """Names of the columns that belong to one row alone."""
    context: tuple[str, ...] = ()
    """Names of the context's features."""
    items: tuple[str, ...] = ()
    """Names of the arms' features."""
    named: bool = True
    """Whether the features have names, or are called x0, x1 and so on."""

    @property
    def weight_names(self) -> tuple[str, ...]:
        """One name per weight."""
        if self.arms is not None:
            arms = [str(arm) for arm in self.arms]
            blocks = [f"{arm}: {name}" for arm in arms for name in self.context] if self.context else arms
            return (*self.own, *blocks)
        return (*self.own, *self.items, *(f"{name}*{item}" for name in self.context for item in self.items))

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        if self.arms is not None:
            return len(self.own) + len(self.arms) * max(1, len(self.context))
        return len(self.own) + len(self.items) * (1 + len(self.context))

    @property
    def centring(self) -> Matrix | None:
        """Matrix that centres weights over the arms; None unless every arm has its own.

        A component common to the weights of all arms is not identifiable.

        Examples
        --------
        >>> Crossing(arms=("a", "b"), own=("slot",)).centring @ [1.0, 5.0, 7.0]
        array([ 1., -1.,  1.])
        """
        if self.arms is None:
            return None
        found, first, n = np.eye(self.n_weights), len(self.own), len(self.arms)
        found[first:, first:] -= np.kron(np.full((n, n), 1 / n), np.eye(max(1, len(self.context))))
        return found

    def positions(self, log: Crossing) -> Index | None:
        """Where the weights of a log's columns are among these; None where only their names can decide.

        Examples
        --------
        >>> here = Crossing(arms=("a", "b", "c"), context=("one", "age"))
        >>> here.positions(Crossing(arms=("c", "a"), context=("age", "one")))
        array([5, 4, 1, 0])
        """
        if self.arms is None or log.arms is None or len(self.own) != len(log.own):
            return None
        at = places(log.arms, np.array([*self.arms, None], dtype=object)[:-1])
        if (at < 0).any():
            unknown = [log.arms[place] for place in np.flatnonzero(at < 0).tolist()]
            raise InputError(f"the policy does not know the arms {unknown[:5]}: fit it on a log that offers them")
        named = self.named and log.named
        own, context = _places(log.own, self.own, named=named), _places(log.context, self.context, named=named)
        width = max(1, len(self.context))
        blocks = at[:, None] * width + (context if len(context) else np.zeros(1, dtype=np.int64))
        return np.concatenate([own, len(self.own) + blocks.ravel()])


def _places(wanted: Sequence[str], known: Sequence[str], *, named: bool) -> Index:
    """Where the known names have each of the wanted ones; by position where either has no names."""
    absent = [name for name in known if name not in wanted] if named else []
    unknown = [name for name in wanted if name not in known] if named else []
    if absent or unknown:
        parts = [f"the log lacks {absent[:5]}"] * bool(absent)
        parts += [f"the policy does not know {unknown[:5]}"] * bool(unknown)
        raise InputError(f"the policy and the log have different features: {'; '.join(parts)}")
    if len(wanted) != len(known):
        raise InputError(f"the policy has {len(known)} features, but the log has {len(wanted)}")
    return np.array([known.index(name) for name in wanted] if named else range(len(known)), dtype=np.int64)
