"""Kill `onlooker track --state` at 200 random moments as its log grows: rounds count once, the state always loads.

`python scripts/kill_track.py --kills 200 --seed 0`. Some more rounds come, alone in a file, with some from before
or with all of them, and the command is given until these are followed; some of the times another process is given the
same state meanwhile. When all rounds are followed, the state must be what one run without a kill leaves, and the next
log begins. Every process is forked from one that has everything imported, so that kills fall into the work.
"""

import argparse
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from onlooker import BanditLog, Environment, LinUCB, TrackingObserver, simulate, write_log
from onlooker.base.errors import OnlookerWarning
from onlooker.cli import main as onlooker

N_ROUNDS = 2600
"""Of each log: the decision for good, after 2,000, is among them."""
DONE, REFUSED = 0, 2
"""How a process may end, unless it is killed."""


@dataclass
class Growing:
    """A log that grows in a folder, and the state that follows it."""

    folder: Path
    log: BanditLog
    n_rounds: int = 0
    """How many are there."""
    before: int = 0
    """How many had been followed when they came."""
    kills: int = 0
    halves: int = 0
    """Kills that left a half-written file."""
    refused: int = 0
    """Processes that found another at work."""
    seen: int = field(default=0, init=False)

    @property
    def state(self) -> Path:
        """Where it is kept."""
        return self.folder / "state.json"

    @property
    def rounds(self) -> Path:
        """What the command is given."""
        return self.folder / "log.parquet"

    def grow(self, chance: random.Random) -> None:
        """Some more rounds come: in a file of their own, with some from before, or with all of them."""
        self.before = self.n_rounds
        self.n_rounds = min(N_ROUNDS, self.n_rounds + chance.choice((1, 40, 300, 700)))
        start = chance.choice((0, self.before, max(0, self.before - chance.randrange(1, 400))))
        write_log(self.log[start : self.n_rounds], self.rounds)

    def check(self) -> int:
        """Rounds followed so far: none of those that came, or all of them."""
        found = TrackingObserver.load(self.state).n_rounds_ if self.state.exists() else 0
        if found not in {self.before, self.n_rounds} or found < self.seen:
            sys.exit(f"the state has {found} rounds after {self.before}, of {self.n_rounds} in all")
        self.seen = found
        return found

    def start(self) -> int:
        """The command in a process of its own."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return child
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.argv = ["onlooker", "track", str(self.rounds), "--state", str(self.state), "--exploration", "ucb:1"]
        code = 1
        try:
            onlooker()
            code = DONE
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        finally:
            os._exit(code)

    def run(self, chance: random.Random, longest: float) -> None:
        """Give the command once, to one process or two, and kill the first at some moment, or as it writes."""
        children = [self.start() for _ in range(chance.choice((1, 1, 2)))]
        end = time.monotonic() + chance.uniform(0, longest)
        as_it_writes = not chance.randrange(3)
        while not (ended := _ended(children[0])) and (time.monotonic() < end or as_it_writes):
            if as_it_writes and self.half_written():
                break
            time.sleep(0.0005)
        if not ended:
            os.kill(children[0], signal.SIGKILL)
        codes = [ended[0] if ended else _wait(children[0]), *map(_wait, children[1:])]
        if wrong := [code for code in codes if code not in {DONE, REFUSED, -signal.SIGKILL}]:
            sys.exit(f"a process ended with code {wrong[0]}")
        self.kills += codes[0] == -signal.SIGKILL
        self.halves += codes[0] == -signal.SIGKILL and self.half_written()
        self.refused += codes.count(REFUSED)
        for path in self.folder.glob(".*.part"):
            path.unlink()

    def half_written(self) -> bool:
        """Whether a state is being written, or was when its writer was killed."""
        return any(self.folder.glob(".state.json.*.part"))


def _ended(child: int) -> tuple[int] | None:
    """How a process has ended, if it has."""
    found, status = os.waitpid(child, os.WNOHANG)
    return (os.waitstatus_to_exitcode(status),) if found else None


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def compare(state: Path, log: BanditLog) -> None:
    """The state must have followed the log exactly once."""
    found = TrackingObserver.load(state)
    whole = TrackingObserver(exploration=found.exploration).fit(log)
    same = (found.theta_ == whole.theta_).all() and (found.covariance_ == whole.covariance_).all()
    if not same or found.n_rounds_ != whole.n_rounds_ or found.evidence_ != whole.evidence_:
        sys.exit(f"the state after {found.n_rounds_} rounds is not that of one run over {whole.n_rounds_}")


def check(place: Path, kills: int, seed: int) -> str:
    """Kill, start again, compare; say in a line what was seen."""
    chance = random.Random(seed)
    growing: list[Growing] = []
    while sum(one.kills for one in growing) < kills:
        folder = place / str(len(growing))
        folder.mkdir()
        growing.append(Growing(folder, _played(len(growing), ids=bool(len(growing) % 2))))
        _follow(growing[-1], chance, kills - sum(one.kills for one in growing[:-1]))
        compare(growing[-1].state, growing[-1].log)
    return (
        f"{kills} kills (seed {seed}) as {len(growing)} logs of {N_ROUNDS} rounds grew, "
        f"{_sum('halves', growing)} left a half-written file, {_sum('refused', growing)} processes found another at "
        "work: the state loaded after each, with no round lost or counted twice; in the end as one run leaves it"
    )


def _sum(name: str, growing: Sequence[Growing]) -> int:
    return sum(getattr(one, name) for one in growing)


def _follow(growing: Growing, chance: random.Random, kills: int) -> None:
    """Until all rounds are followed; once the kills are spent, without any."""
    longest = 0.3
    while growing.n_rounds < N_ROUNDS:
        growing.grow(chance)
        while growing.check() < growing.n_rounds:
            began = time.monotonic()
            growing.run(chance, longest if growing.kills < kills else 60.0)
            # Long enough for some to end, short enough for most not to.
            longest = 0.8 * longest + 0.2 * 1.3 * (time.monotonic() - began)


def _played(seed: int, *, ids: bool) -> BanditLog:
    log = simulate(Environment(3, 4, seed=seed), LinUCB(), N_ROUNDS, seed=seed).log
    return BanditLog(log.features, log.offsets, log.chosen, round_ids=range(N_ROUNDS) if ids else None)


def main() -> None:
    """Parse and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    # Threads do not survive a fork.
    os.environ["ONLOOKER_THREADS"] = "1"
    warnings.simplefilter("ignore", OnlookerWarning)
    with TemporaryDirectory() as place:
        print(check(Path(place), given.kills, given.seed))


if __name__ == "__main__":
    main()
