"""The imitation objective of a log in parts: every pass is a task that each part runs where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from onlooker.checks import as_number
from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.objective import Objective, Pass, Sums, added
from onlooker.parts import Parts
from onlooker.softmax import SKETCH_ROUNDS_PER_FEATURE, SoftmaxObjective
from onlooker.survey import Survey
from onlooker.types import Matrix, Vector
from onlooker.windows import Windows


@dataclass(frozen=True, eq=False)
class RunPass:
    """One pass over the rounds of a part."""

    wanted: Pass

    def __call__(self, part: BanditLog, first: int) -> Sums:  # noqa: ARG002  the protocol's shape
        """Go over the part's rounds."""
        if (part.n_arms > 1).any():
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


class PartedObjective(Objective):
    """Mean conditional softmax loss of the picks from round `start` on, with an L2 penalty.

    Parts are gone through in order and their sums added in order: the same parts give the same numbers, wherever and
    by however many workers they are looked at. Other parts of the same log give the same up to rounding.

    Parameters
    ----------
    parts
        The log.
    start
        First round to explain; at least one from there on offers a choice.
    l2
        Strength of the penalty on the mean loss.
    survey
        What `survey(parts)` found.
    """

    def __init__(self, parts: Parts, *, start: int, l2: float, survey: Survey) -> None:
        self.parts, self.start, self.survey = parts, start, survey
        self.l2 = as_number(l2, "l2", least=0.0)
        self.n_features, self.feature_names = parts.n_features, parts.feature_names
        counts = survey.after(parts, start)
        if not counts.n_choices:
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        self.n_rounds = counts.n_choices
        self.n_one_arm = counts.n_rounds - counts.n_choices
        self.total = float(self.n_rounds)
        self.null_loss = counts.log_arms / self.total
        self._sample = survey.sample_after(start)

    def run(self, wanted: Pass) -> Sums:
        """Go over all rounds once."""
        return added(self.parts.run(RunPass(wanted), self.start))

    def sketch(self) -> SoftmaxObjective | None:
        """The rounds of the survey's sample; None where they would be too few."""
        if np.count_nonzero(self._sample.n_arms > 1) < SKETCH_ROUNDS_PER_FEATURE * self.n_features:
            return None
        return SoftmaxObjective(self._sample, l2=self.l2)

    def spread(self, *, full: bool) -> Matrix:
        """Covariance of the features within the rounds, averaged over (a sample of) them."""
        if not full and (self._sample.n_arms > 1).any():
            return SoftmaxObjective(self._sample, l2=0.0).spread(full=False)
        theta = np.zeros(self.n_features)
        return self.evaluate(theta).hessian - self.l2 * np.eye(len(theta))

    def rounding(self) -> Vector:
        """What rounding may add to a value of each feature, shape (d,)."""
        return np.asarray(8 * np.finfo(self.survey.dtype).eps * self.survey.largest)

    def unpenalised(self) -> Self:
        """The same rounds without the penalty."""
        return type(self)(self.parts, start=self.start, l2=0.0, survey=self.survey)
