"""Additive scores: a smooth curve for every feature that has more than two values, chosen surfaces of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from onlooker.base.checks import as_whole, counted
from onlooker.base.errors import InputError
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.imitation.bounded import Flags
from onlooker.imitation.choice_model import LEAST_L2, MOST_COLUMNS, Band
from onlooker.imitation.scores.additive_policy import AdditivePolicy
from onlooker.imitation.scores.evidence import variances
from onlooker.imitation.scores.splines import Spline, spline_of
from onlooker.imitation.scores.terms import Term, crossed
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import Named

MOST_KNOTS, FEWEST_KNOTS, MANY_COLUMNS = 16, 8, 500
"""Knots of a curve unless given: fewer where all curves would have more columns, whose square is the time of a fit.

With eight, a corner or a steep step between two knots is out of a curve's reach: bands miss it, however many rounds
there are (`python benchmarks/nonlinear.py bands --knots 8`).
"""

LOOSE, LEAST_SPREAD = 100.0, 0.5
"""For bands, the variance of a curve's weights is so many times the one that was chosen, and that of a curve whose bent
part has at least this spread, in units of the score: picks that call for a straight line may still hide a bend.

`python benchmarks/nonlinear.py bands` measures both; with a tenth of either, bands miss bends and corners.
"""

SURFACE_KNOTS = 4
"""Knots of each of the two features of an interaction: it has products of all their curves."""

MEAN_ROWS = 10_000
"""Rows over which spreads of curves and means of their slopes are taken: an even sample, where there are more."""

YES_OR_NO = np.array([0.0, 1.0])
"""Of a feature in an interaction that has no curve: only its straight line is used."""


@dataclass(frozen=True)
class Additive:
    """A smooth curve for every numeric feature, and a weight for every feature with two values.

    Curves are cubic splines with knots at quantiles of the rounds that are imitated. How smooth each is, is chosen by
    the evidence; a curve that the picks do not call for becomes a straight line. Beyond the range that was seen a curve
    continues as a straight line, but values that lie far out (beyond the quartiles by more than three times their
    distance) are taken as that limit. The fit is convex.

    Parameters
    ----------
    knots
        Of every curve, the ends of the range included; None takes 16, down to 8 where there are many features, and 8 in
        observers that follow a learner.
    monotone
        Features whose curve may only rise (+1) or fall (-1), by name, or by number where features have no names.
    interactions
        Pairs of features that get a surface besides their curves; a pair with a yes or no gets a curve for yes.

    Examples
    --------
    >>> from onlooker import SuffixImitation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(3000, 4, 2))
    >>> scores = 3 * np.cos(2 * X[..., 0]) + X[..., 1]
    >>> chosen = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    >>> log = BanditLog.from_dense(X, chosen, feature_names=["angle", "speed"])
    >>> policy = SuffixImitation(score=Additive(), burn_in="naive").fit(log).policy_
    >>> policy
    AdditivePolicy(2 features, 2 curves)
    >>> angle = policy.effect("angle", [0.0, 1.5])
    >>> bool(abs(angle.effect[0] - angle.effect[1] - 3 * (1 - np.cos(3.0))) < 0.5)
    True
    """

    knots: int | None = None
    _: KW_ONLY
    monotone: Mapping[str, int] = field(default_factory=dict)
    interactions: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        if self.knots is not None:
            as_whole(self.knots, "knots", least=3)
        if not isinstance(self.monotone, Mapping) or any(sign not in (1, -1) for sign in self.monotone.values()):
            raise InputError(f"monotone is {self.monotone!r}: map names of features to +1 (rising) or -1 (falling)")
        pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in self.interactions]
        if any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
            raise InputError(f"interactions is {self.interactions!r}: pass a list of pairs of two features")
        object.__setattr__(self, "monotone", dict(self.monotone))
        object.__setattr__(self, "interactions", tuple(pairs))

    def __hash__(self) -> int:
        return hash((self.knots, tuple(sorted(self.monotone.items())), self.interactions))

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> AdditiveBasis:
        """Knots at quantiles of these rounds, and the smoothness that they call for."""
        names = feature_labels(log.weight_names, log.n_features)
        known = {name: j for j, name in enumerate(names)}
        absent = [one for one in (*self.monotone, *(n for pair in self.interactions for n in pair)) if one not in known]
        if absent:
            raise InputError(f"the log has no feature {absent[0]!r}: it has {', '.join(names[:5])}")
        rows, varies = log.dense, _vary(log)
        parts: list[Part] = []
        most = MANY_COLUMNS // max(1, int(np.count_nonzero(varies))) - 1
        knots = max(FEWEST_KNOTS, min(MOST_KNOTS, most)) if self.knots is None else self.knots
        for j, name in enumerate(names):
            spline = spline_of(rows[:, j], knots) if varies[j] else None
            parts += _parts_of(j, spline, self.monotone.get(name, 0))
        parts += [_surface(known[a], known[b], rows) for a, b in self.interactions]
        return AdditiveBasis.smoothed(tuple(parts), log, l2, weights)


@dataclass(frozen=True, eq=False)
class Part:
    """Some columns of the basis that share one degree of smoothness: splines, given by their coefficients."""

    features: tuple[int, ...]
    """Places of its features: one or two."""
    splines: tuple[Spline, ...]
    """One for each; none where the column is the feature itself, and it has no curve."""
    transform: Matrix
    """Coefficients of the columns, shape (B-splines, columns); of a straight part, those of the line."""
    straight: bool = False
    """Whether its one column is the feature itself, times `sign`."""
    sign: int = 0
    """+1 or -1 where the score may only rise, or fall, with the feature."""

    @property
    def n_columns(self) -> int:
        """How many."""
        return 1 if self.straight else self.transform.shape[1]

    def columns(self, rows: Features) -> Matrix:
        """Its columns for rows of features."""
        values = [rows[:, j].astype(np.float64) for j in self.features]
        if self.straight:
            x = self.splines[0].within(values[0]) if self.splines else values[0]
            return (self.sign or 1) * x[:, None]
        if len(self.splines) == 1:
            return self.splines[0].columns(values[0], self.transform)
        first, second = (one.columns(x) for one, x in zip(self.splines, values, strict=True))
        return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(first), -1) @ self.transform)

    @property
    def coefficients(self) -> Matrix:
        """Of its columns, sign included."""
        return self.transform * (self.sign or 1) if self.straight else self.transform


def _parts_of(place: int, spline: Spline | None, sign: int) -> list[Part]:
    """The straight part of a feature and, where it has a spline, the rest of its curve."""
    if spline is None:
        return [Part((place,), (), np.ones((1, 1)), straight=True, sign=sign)]
    rest = sign * spline.steps() if sign else spline.wiggles()
    straight = Part((place,), (spline,), spline.line[:, None], straight=True, sign=sign)
    return [straight, Part((place,), (spline,), rest, sign=sign)]


def _surface(first: int, second: int, rows: Features) -> Part:
    """Products of the curves of two features; of a feature with two values, its straight line is all."""
    splines, sides = [], []
    for j in (first, second):
        spline = spline_of(rows[:, j], SURFACE_KNOTS)
        splines.append(Spline(YES_OR_NO) if spline is None else spline)
        line = splines[-1].line[:, None]
        if spline is None:
            sides.append(line)
            continue
        x = spline.within(rows[:, j])
        wiggles = spline.wiggles()
        spread = np.sqrt((spline.columns(x) @ wiggles).var(axis=0).sum())
        sides.append(np.hstack([(line - x.mean()) / x.std(), wiggles / spread]))
    return Part((first, second), tuple(splines), crossed(*sides))


@dataclass(frozen=True, eq=False)
class AdditiveBasis:
    """An additive score made ready for a log: its columns, scaled so that one penalty serves all."""

    parts: tuple[Part, ...]
    """In the order of their columns."""
    scales: tuple[float, ...]
    """What the columns of each part are multiplied by."""
    means: tuple[Vector, ...]
    """Mean of the B-splines of each part, or of their products, over the rows; empty for features without a curve.

    Of a surface, numbers that give the same mean of its columns.
    """
    slopes: tuple[Vector, ...]
    """Mean slope of the B-splines of each part over the rows; empty for surfaces and features without a curve."""
    loosened: tuple[float, ...]
    """What the penalty of each part is multiplied by for bands."""
    l2: float
    """The penalty that the scales are for."""
    made: tuple[BanditLog, Matrix] | None = None
    """The log that it was prepared for, with its columns: they need not be made again."""

    @classmethod
    def smoothed(cls, parts: tuple[Part, ...], log: BanditLog, l2: float, weights: Vector | None) -> AdditiveBasis:
        """Scales that make the penalty `l2` on a curve's weights the one that the evidence chooses."""
        l2 = max(l2, LEAST_L2)
        sizes = [part.n_columns for part in parts]
        if sum(sizes) > MOST_COLUMNS:
            raise InputError(
                f"the curves have {counted(sum(sizes), 'column')}: use fewer knots, features or interactions"
            )
        total = float(np.count_nonzero(log.n_arms > 1) if weights is None else weights[log.n_arms > 1].sum())
        units, middles, wide, last = [], [], np.empty((len(log.features), sum(sizes))), 0
        stride, even = max(1, len(log.features) // MEAN_ROWS), np.full(len(log.features), 1 / len(log.features))
        for part, size in zip(parts, sizes, strict=True):
            block = part.columns(log.dense)
            spread = float(np.sqrt(block[::stride].var(axis=0).sum()))
            units.append(1 / spread if spread > 0 else 1.0)
            middles.append(even @ block)
            np.multiply(block, units[-1], out=wide[:, last : last + size])
            last += size
        curved = np.cumsum([not part.straight for part in parts]) - 1
        groups = np.repeat(np.where([part.straight for part in parts], -1, curved), sizes)
        penalties = l2 * np.repeat(units, sizes) ** 2
        positive = np.repeat([part.sign != 0 for part in parts], sizes)
        found = variances(log.with_features(wide), groups, penalties, weights=weights, positive=positive)
        scales = [
            1.0 if part.straight else unit * float(np.sqrt(found[group] * total * l2))
            for part, unit, group in zip(parts, units, curved, strict=True)
        ]
        loosened = [
            1.0 if part.straight else float(min(1 / LOOSE, found[group] / LEAST_SPREAD**2))
            for part, group in zip(parts, curved, strict=True)
        ]
        # The straight part of a feature and the rest of its curve have the same B-splines.
        some, looked = log.dense[::stride], {}
        for features in dict.fromkeys(part.features for part in parts):
            mine = [i for i, part in enumerate(parts) if part.features == features]
            looked[features] = (
                _means([parts[i] for i in mine], [middles[i] for i in mine]),
                _slopes(parts[mine[0]], some),
            )
        means, slopes = zip(*(looked[part.features] for part in parts), strict=True)
        wide *= np.repeat(np.array(scales) / units, sizes)
        return cls(parts, tuple(scales), means, slopes, tuple(loosened), l2, (log, wide))

    @cached_property
    def smooth(self) -> Flags:
        """Which weights have a penalty of their own, chosen by evidence."""
        return np.repeat([not part.straight for part in self.parts], [part.n_columns for part in self.parts])

    @cached_property
    def loose(self) -> Vector:
        """What the penalty of every weight is multiplied by for bands."""
        return np.repeat(self.loosened, [part.n_columns for part in self.parts])

    @cached_property
    def positive(self) -> Flags:
        """Which weights may not be negative."""
        return np.repeat([part.sign != 0 for part in self.parts], [part.n_columns for part in self.parts])

    def basis(self, log: BanditLog) -> BanditLog:
        """The same rounds with the columns of the curves in the place of the features."""
        labels = feature_labels(log.weight_names, log.n_features)
        names: list[str] = []
        for part in self.parts:
            label = "~".join(labels[j] for j in part.features)
            names += [label] if part.straight else [f"{label}~{k + 1}" for k in range(part.n_columns)]
        if self.made is not None and self.made[0] is log:
            values = self.made[1]
        else:
            pairs = zip(self.parts, self.scales, strict=True)
            values = np.hstack([scale * part.columns(log.dense) for part, scale in pairs])
        return log.with_features(values, names if len(set(names)) == len(names) else None)

    def policy(self, theta: Vector, log: Named, band: Band | None = None) -> AdditivePolicy:
        """The policy with these weights of the columns."""
        n_features = 1 + max(j for part in self.parts for j in part.features)
        weights, terms = np.zeros(n_features), []
        for features in dict.fromkeys(part.features for part in self.parts):
            mine = [i for i, part in enumerate(self.parts) if part.features == features]
            places = np.concatenate([self._places(i) for i in mine])
            if not self.parts[mine[0]].splines:
                weights[features[0]] = (self.parts[mine[0]].sign or 1) * theta[places[0]]
                continue
            turned = np.hstack([self.parts[i].coefficients * self.scales[i] for i in mine])
            spread, other, middle = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
            if band is not None:
                spread = turned @ band.covariance[np.ix_(places, places)] @ turned.T
                middle = turned @ band.theta[places]
            if band is not None and band.model is not None:
                other = turned @ band.model[np.ix_(places, places)] @ turned.T
            part, found = self.parts[mine[0]], turned @ theta[places]
            terms.append(Term(features, part.splines, found, spread, self.means[mine[0]], middle, other))
        return AdditivePolicy(weights, log.feature_names, log.categories, terms)

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """A weight for every feature: of one with a curve, the curve's mean slope over the rows that were fitted."""
        n_features = 1 + max(j for part in self.parts for j in part.features)
        turn = np.zeros((n_features, len(theta)))
        for i, part in enumerate(self.parts):
            if len(part.features) == 1:
                slopes = self.slopes[i] @ part.coefficients if part.splines else np.full(1, part.sign or 1)
                turn[part.features[0], self._places(i)] = self.scales[i] * slopes
        return feature_labels(log.feature_names, n_features), turn @ theta, turn @ covariance @ turn.T

    def _places(self, i: int) -> Index:
        """Of a part's columns."""
        first = sum(part.n_columns for part in self.parts[:i])
        return np.arange(first, first + self.parts[i].n_columns)


def _means(parts: list[Part], middles: list[Vector]) -> Vector:
    """Means of the B-splines of a feature, or of their products, from those of all its columns: their sum is one."""
    if not parts[0].splines:
        return np.zeros(0)
    turn = np.hstack([np.ones((len(parts[0].transform), 1)), *(part.coefficients for part in parts)])
    sizes = np.linalg.norm(turn, axis=0)
    sizes[sizes == 0] = 1.0
    return np.asarray(np.linalg.lstsq((turn / sizes).T, np.concatenate([[1.0], *middles]) / sizes)[0])


def _slopes(part: Part, rows: Features) -> Vector:
    """Mean slope over the rows of the B-splines of a feature's curve."""
    if len(part.splines) != 1:
        return np.zeros(0)
    return np.asarray(part.splines[0].slopes(rows[:, part.features[0]].astype(np.float64)).mean(axis=0))


def _vary(log: BanditLog) -> Flags:
    """Which features vary within some round."""
    rows, starts = log.dense, log.offsets[:-1]
    return np.array([(np.maximum.reduceat(x, starts) > np.minimum.reduceat(x, starts)).any() for x in rows.T])
