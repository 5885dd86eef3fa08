"""Sums over windows of neighbouring rows, for rows that come in parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.types import Index, Matrix


@dataclass(frozen=True, eq=False)
class Windows:
    """Products of the windows inside some rows, and the rows at both ends that windows into other parts need.

    Examples
    --------
    Rows in two parts give what they give in one:

    >>> rows = np.random.default_rng(0).normal(size=(9, 2))
    >>> parts = Windows.of(rows[:2], 4).joined(Windows.of(rows[2:], 4))
    >>> bool(np.allclose(parts.products(), Windows.of(rows, 4).products()))
    True
    """

    width: int
    """Rows in a window."""
    inside: Matrix
    """Sum of `W W'` over the windows that lie inside, `W` the sum of a window's rows; shape (d, d)."""
    head: Matrix
    """The first `width - 1` rows, or all where there are fewer."""
    tail: Matrix
    """The last `width - 1` rows, or all where there are fewer."""

    @classmethod
    def of(cls, rows: Matrix, width: int, repeats: Index | None = None) -> Windows:
        """Of rows that lie next to each other, each as often in a row as `repeats` says; once by default.

        Windows that lie within the repeats of one row are all alike, so no row has to be repeated more than `width`
        times.

        >>> rows = np.random.default_rng(0).normal(size=(3, 2))
        >>> short, long = Windows.of(rows, 3, np.array([2, 0, 50])), Windows.of(np.repeat(rows, [2, 0, 50], axis=0), 3)
        >>> bool(np.allclose(short.products(), long.products()))
        True
        """
        alike = np.zeros((rows.shape[1],) * 2)
        if repeats is not None:
            shown = np.minimum(repeats, width)
            alike = width**2 * (rows.T @ ((repeats - shown)[:, None] * rows))
            rows = np.repeat(rows, shown, axis=0)
        edge = width - 1
        # Copies: a few rows of them would keep all in memory.
        head, tail = rows[:edge].copy(), rows[max(0, len(rows) - edge) :].copy()
        return cls(width, alike + _products(rows, width), head, tail)

    def joined(self, later: Windows) -> Windows:
        """Of these rows and those that come after them."""
        edge = self.width - 1
        astride = _products(np.vstack([self.tail, later.head]), self.width)
        head = self.head if len(self.head) == edge else np.vstack([self.head, later.head])[:edge]
        tail = later.tail if len(later.tail) == edge else np.vstack([self.tail, later.tail])
        return Windows(self.width, self.inside + astride + later.inside, head, tail[max(0, len(tail) - edge) :])

    def products(self) -> Matrix:
        """Sum of `W W'` over all windows, those that reach over the ends included."""
        nothing = Windows.of(np.zeros((self.width - 1, self.head.shape[1])), self.width)
        return nothing.joined(self).joined(nothing).inside


def _products(rows: Matrix, width: int) -> Matrix:
    """Sum of `W W'` over the windows of `width` rows; zero where there are fewer rows."""
    running = np.vstack([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    sums = running[width:] - running[:-width]
    return np.asarray(sums.T @ sums)
