"""The imitation objective of a log in parts: every pass is a task that each part runs where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np

from onlooker.base.checks import as_number
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.leverage import VALUES, Lifted, lifted_gradients
from onlooker.imitation.objective import Objective, Pass, Sums, Windows, added
from onlooker.imitation.softmax import (
    HARD_ROUNDS_PER_FEATURE,
    LONG,
    SKETCH_ROUNDS_PER_FEATURE,
    SoftmaxObjective,
    hardest_places,
    round_losses,
)
from onlooker.logs.factored import FactoredRows
from onlooker.logs.factored_curvature import diagonal_preconditioner, filled_hessian
from onlooker.logs.layouts import MOST_WEIGHTS, Layout
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import Limited, PartsSummary

_SPARE = 4
"""Rounds that parts are asked for, for every one that is wanted."""

_ROOM = 4
"""The hardest rounds take at most one in so many of the bytes that a sample may take."""


@dataclass(frozen=True, eq=False)
class RunPass:
    """One pass over the rounds of a part."""

    wanted: Pass

    def __call__(self, part: BanditLog, first: int) -> Sums:  # noqa: ARG002  the protocol's shape
        """Go over the part's rounds."""
        if part.informative.any():
            return SoftmaxObjective(part, l2=0.0).run(self.wanted)
        d, width = part.n_features, self.wanted.width
        return Sums(
            loss=0.0,
            gradient=np.zeros(d),
            upper=np.zeros((0, 0) if self.wanted.share is None else (d, d)),
            explained=0,
            agreed=0,
            windows=Windows.of(np.zeros((0, d)), width) if width else None,
        )


@dataclass(frozen=True, eq=False)
class AddVariances:
    """Diagonal of the Hessian of a part's summed loss."""

    theta: Vector

    def __call__(self, part: BanditLog, first: int) -> Vector:  # noqa: ARG002  the protocol's shape
        """Go over the part's rounds."""
        if not part.informative.any():
            return np.zeros(part.n_features)
        objective = SoftmaxObjective(part, l2=0.0)
        return objective.total * objective.variances(self.theta)


@dataclass(frozen=True, eq=False)
class AddLifted:
    """The gradients of a part's rounds, each at the theta of all other rounds."""

    theta: Vector
    mean: Vector
    """Taken off every round's gradient."""
    metric: Matrix
    """Inverse of the summed Hessian of all rounds."""

    def __call__(self, part: BanditLog, first: int) -> Lifted:  # noqa: ARG002  the protocol's shape
        """Go over the part's rounds."""
        return lifted_gradients(part, part.informative.astype(np.float64), self.theta, self.mean, self.metric)


@dataclass(frozen=True, eq=False)
class TakeHardest:
    """The rounds of a part that theta explains least."""

    theta: Vector
    least: float
    """Loss that they have at least."""
    n_values: int
    """Values that they hold at most."""

    def __call__(self, part: BanditLog, first: int) -> tuple[BanditLog, Vector]:  # noqa: ARG002  the protocol's shape
        """Give them with their losses."""
        losses = np.where(part.informative, round_losses(part, self.theta), -1.0)
        places = hardest_places(part, losses, self.n_values)
        places = places[losses[places] >= self.least]
        rounds = part[places]
        # Without names and ids, which are not needed and may have to be sent.
        found = BanditLog(
            rounds.features,
            rounds.offsets,
            rounds.chosen_or_unknown,
            possible=rounds.possible,
            offer_probability=rounds.offer_probability,
        )
        return found, losses[places]


@dataclass(frozen=True, eq=False)
class TakeGroups:
    """Which arms the rounds of a part compare."""

    def __call__(self, part: BanditLog, first: int) -> Index:  # noqa: ARG002  the protocol's shape
        """The number of each arm's group, shape (K,)."""
        assert isinstance(part.features, FactoredRows)
        return part.features.groups


def compared(groups: Iterable[Index]) -> Index:
    """Which arms are compared in any part, given those that are in each.

    Examples
    --------
    >>> compared([np.array([0, 0, 1, 2]), np.array([0, 1, 0, 2])])
    array([0, 0, 0, 1])
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    found: Index | None = None
    for one in groups:
        if found is None:
            found = one
            continue
        firsts = [np.unique(labels, return_index=True)[1][labels] for labels in (found, one)]
        arms = np.arange(len(one))
        entries: Any = (np.ones(2 * len(arms)), (np.tile(arms, 2), np.concatenate(firsts)))
        graph = csr_array(entries, shape=(len(arms), len(arms)))
        found = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    assert found is not None
    return found


class PartedObjective(Objective):
    """Mean conditional softmax loss of the picks from round `start` on, with L2 regularisation.

    Parts are scanned in order and their sums added in order: the same parts give the same numbers, wherever and
    by however many workers they are read. Other parts of the same log give the same up to rounding.

    Parameters
    ----------
    parts
        The log.
    start
        First round to explain; at least one from there on offers a choice.
    l2
        Strength of the L2 regularisation of the mean loss.
    summary
        What `summarise_parts(parts)` found.
    """

    def __init__(self, parts: Parts, *, start: int, l2: float, summary: PartsSummary) -> None:
        self.parts, self.start, self.summary = parts, start, summary
        self.l2 = as_number(l2, "l2", least=0.0)
        crossing = getattr(parts, "crossing", None)
        self.n_features = parts.n_features
        self.feature_names = parts.feature_names if crossing is None else crossing.weight_names
        counts = summary.after(parts, start)
        if not counts.n_choices:
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        self.n_rounds = counts.n_choices
        self.n_vague = counts.n_vague
        self.n_one_arm = counts.n_rounds - counts.n_choices - counts.n_vague
        self.sets = any(one.has_sets for one in summary.counts)
        self.total = float(self.n_rounds)
        self.null_loss = counts.log_arms / self.total
        self._sample = summary.sample_after(start)
        self.many = isinstance(summary.sample.features, Layout) and self.n_features > MOST_WEIGHTS
        rows, self._groups = self._sample.features, None
        if isinstance(rows, FactoredRows) and rows.per_arm:
            self._groups = rows.groups if rows.which is None else compared(parts.run(TakeGroups(), start))
            self.n_redundant = int(np.count_nonzero(np.bincount(self._groups) > 1)) * rows.n_block

    def filled(self, hessian: Matrix) -> Matrix:
        """The Hessian with curvature where the same weights are added to all arms that are compared."""
        rows = self._sample.features
        if self._groups is None or not isinstance(rows, FactoredRows):
            return hessian
        return filled_hessian(hessian, self._groups, rows.n_block, rows.n_own)

    @property
    def long(self) -> bool:
        """Whether a pass takes so long that one more is worth avoiding, by the size of the sample."""
        return self._sample.features.size * self.summary.stride > LONG

    def run(self, wanted: Pass) -> Sums:
        """Go over all rounds once."""
        return added(self.parts.run(RunPass(wanted), self.start))

    def lifted(self, theta: Vector, metric: Matrix) -> Lifted | None:
        """Every round's gradient at the theta of all other rounds; None if that is dear."""
        if isinstance(self._sample.features, Layout) and self.n_rounds * self.n_features > VALUES:
            return None
        task = AddLifted(theta, -self.l2 * theta, metric)
        return reduce(Lifted.__add__, self.parts.run(task, self.start))

    def variances(self, theta: Vector) -> Vector:
        """Diagonal of the Hessian at `theta`, without regularisation, or about so much, shape (d,)."""
        if not self.many:
            return super().variances(theta)
        found: Vector = sum(self.parts.run(AddVariances(theta), self.start), start=np.zeros(self.n_features))
        return found / self.total

    def preconditioner(self, theta: Vector) -> Callable[[Vector], Vector]:
        """By the diagonal of the Hessian, from all rounds: a sample would miss what is rare."""
        return diagonal_preconditioner(self.variances(theta), self.l2)

    def sketch(self) -> SoftmaxObjective | None:
        """The rounds of the summary's sample; None where they would be too few."""
        if np.count_nonzero(self._sample.n_arms > 1) < SKETCH_ROUNDS_PER_FEATURE * self.n_features:
            return None
        return SoftmaxObjective(self._sample, l2=self.l2)

    def spread(self, *, full: bool) -> Matrix:
        """Covariance of the features within the rounds, averaged over (a sample of) them."""
        if not full and (self._sample.n_arms > 1).any():
            return SoftmaxObjective(self._sample, l2=0.0).spread(full=False)
        theta = np.zeros(self.n_features)
        return self.evaluate(theta).hessian - self.l2 * np.eye(len(theta))

    def largest(self) -> Vector:
        """Largest absolute value of every feature."""
        return self.summary.largest

    def rounding(self) -> Vector:
        """What rounding may add to a value of each feature, shape (d,)."""
        return np.asarray(8 * np.finfo(self.summary.dtype).eps * self.summary.largest)

    def hardest(self, theta: Vector) -> BanditLog | None:
        """Those rounds that theta explains least; None where that would be most of them, or too few fit into memory."""
        wanted = HARD_ROUNDS_PER_FEATURE * self.n_features
        sample = self._sample[self._sample.n_arms > 1]
        if not sample.n_rounds or 2 * wanted > self.n_rounds:
            return None
        # The sample says from which loss on rounds are worth a look.
        known = np.sort(round_losses(sample, theta))
        least = float(known[-min(len(known), 1 + _SPARE * wanted // self.summary.stride)])
        n_values = LONG
        if isinstance(self.parts, Limited):
            n_values = min(n_values, self.parts.sample_bytes // (_ROOM * self.summary.dtype.itemsize))
        found: tuple[BanditLog, Vector] | None = None
        for more in self.parts.run(TakeHardest(theta, least, n_values), self.start):
            found = more if found is None else _hardest(found, more, n_values)
        return None if found is None or found[0].n_rounds < self.n_features else found[0]

    def unpenalised(self) -> Self:
        """The same rounds without regularisation."""
        return type(self)(self.parts, start=self.start, l2=0.0, summary=self.summary)


def _hardest(
    found: tuple[BanditLog, Vector], more: tuple[BanditLog, Vector], n_values: int
) -> tuple[BanditLog, Vector]:
    """The hardest of both as one log, with their losses."""
    if not more[0].n_rounds:
        return found
    log, losses = BanditLog.concat([found[0], more[0]]), np.concatenate([found[1], more[1]])
    places = hardest_places(log, losses, n_values)
    return log[places], losses[places]
