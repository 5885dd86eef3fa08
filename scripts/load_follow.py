"""A growing log, followed with a state that is saved and loaded on the way: memory must stay where it was."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from resident import resident

from onlooker import BanditLog, OnlookerWarning, TrackingObserver, direction_error, read_log, write_log

FEATURES, ARMS = 6, 12
ROUNDS = 2 * 60 * 60 * 50
"""Two hours of fifty rounds a second."""
PIECE = 500
"""Rounds that arrive at a time, as a file that is read and removed."""
SAVED_EVERY = 20
"""Pieces between a save of the state and a load from it, as after a restart."""
GROWTH = 5.0
"""Megabytes that the process may grow by after the first tenth of the log."""


class Player:
    """A LinUCB that plays for ever, in memory that does not depend on how long."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(51)
        self.theta_star = self.rng.normal(size=FEATURES)
        self.inverse, self.b = np.eye(FEATURES), np.zeros(FEATURES)

    def play(self, n_rounds: int) -> BanditLog:
        """The next rounds."""
        X = self.rng.normal(size=(n_rounds, ARMS, FEATURES))
        X /= np.linalg.norm(X, axis=2, keepdims=True)
        noise, chosen = 0.1 * self.rng.normal(size=n_rounds), np.zeros(n_rounds, dtype=np.int64)
        for t, arms in enumerate(X):
            turned = arms @ self.inverse
            pick = int((turned @ self.b + 0.1 * np.sqrt(np.einsum("kd,kd->k", turned, arms))).argmax())
            x, moved = arms[pick], turned[pick]
            self.inverse -= np.outer(moved, moved) / (1 + x @ moved)
            self.b += x * (x @ self.theta_star + noise[t])
            chosen[t] = pick
        return BanditLog.from_dense(X, chosen)


def check(rounds: int, minutes: float, folder: Path) -> str:
    """Follow; say in a line what was seen, or exit where memory grew or the answer is wrong."""
    player, steady, restarted = Player(), TrackingObserver(), TrackingObserver()
    state, piece, samples, sizes = folder / "state.json", folder / "piece.parquet", [], []
    pieces, started = max(20, rounds // PIECE), time.monotonic()
    for number in range(pieces):
        # What is late is made up for: the log does not wait.
        time.sleep(max(0.0, started + 60 * minutes * number / pieces - time.monotonic()))
        write_log(player.play(PIECE), piece)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OnlookerWarning)
            steady.partial_fit(read_log(piece))
            restarted.partial_fit(read_log(piece))
        piece.unlink()
        if number % SAVED_EVERY == SAVED_EVERY - 1:
            restarted.save(state)
            sizes.append(state.stat().st_size)
            restarted = TrackingObserver.load(state)
        samples.append(resident())
    if not np.array_equal(restarted.theta_, steady.theta_):
        sys.exit("the observer that was saved and loaded differs from the one that was not")
    if (error := direction_error(steady.theta_, player.theta_star)) > 0.05:
        sys.exit(f"the learner was lost: direction error {error:.3f}")
    warm = samples[pieces // 10 :]
    said = (
        f"{pieces * PIECE:,} rounds in {(time.monotonic() - started) / 60:.1f} minutes, state saved and loaded "
        f"{len(sizes)} times ({sizes[0]:,} bytes, then {sizes[-1]:,}), direction error {error:.4f}; after the first "
        f"tenth {warm[0]:.1f} MB, at the end {warm[-1]:.1f} MB, at most {max(warm):.1f} MB"
    )
    if max(warm) - warm[0] > GROWTH:
        sys.exit(f"{said}: more than {GROWTH:.0f} MB of growth")
    return said
