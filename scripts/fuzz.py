"""Feed mutated files to every reader, many thousand a minute; keep each that is neither read nor refused in one line.

`python scripts/fuzz.py --inputs 1000000 --seed 0 --workers 2` takes about an hour on two idle cores. Ctrl-C stops it;
the same command goes on where it was, `--anew` does not. A seed gives the same inputs in every run. Findings
are kept under tests/fuzz/findings, which the tests read again: mend the reader, and they pass.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import resource
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
FINDINGS = TESTS / "fuzz" / "findings"
PROGRESS = Path(__file__).parent.parent / "build" / "fuzz.json"
BATCH = 500
"""Inputs that a worker takes at a time."""
MEMORY = 4 << 30
"""Bytes of address space of a worker: no small file needs more."""
PATIENCE = 120.0
"""Seconds without a word after which a worker is taken to hang where no signal reaches it."""


def main() -> None:
    """Parse, run, say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many, over all targets by their shares")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only this one; repeat for more")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="begin with the first input again")
    chosen = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from fuzz.targets import TARGETS

    names = chosen.target or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        sys.exit(f"no target {unknown[0]!r}: there are {', '.join(TARGETS)}")
    shares = sum(TARGETS[name].share for name in names)
    wanted = {name: -(-chosen.inputs * TARGETS[name].share // shares) for name in names}
    run = Run(chosen.seed, wanted, anew=chosen.anew)
    deadline = None if chosen.minutes is None else time.monotonic() + 60 * chosen.minutes
    try:
        run.go(chosen.workers, deadline)
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on from here")
    run.save()
    run.tell()
    sys.exit(1 if run.findings else 0)


class Run:
    """What is done and what is left."""

    def __init__(self, seed: int, wanted: dict[str, int], *, anew: bool) -> None:
        self.seed, self.wanted = seed, wanted
        kept = json.loads(PROGRESS.read_text(encoding="utf-8")) if PROGRESS.exists() and not anew else {}
        before = kept.get(str(seed), {})
        self.done = Counter({name: min(before.get(name, 0), count) for name, count in wanted.items()})
        self.findings: Counter[str] = Counter()
        self._next = Counter(self.done)
        self._began, self._first = time.monotonic(), sum(self.done.values())
        self._told = 0.0

    def go(self, workers: int, deadline: float | None) -> None:
        """Hand batches to workers until all are done or time is over; a worker that dies or hangs is replaced."""
        crew = [Worker(self.seed) for _ in range(workers)]
        try:
            busy = [worker for worker in crew if self._assign(worker)]
            while busy:
                ready = wait([worker.answers for worker in busy], timeout=5.0)
                for worker in list(busy):
                    if worker.answers in ready:
                        found = worker.answer()
                    elif worker.is_lost():
                        found = worker.replace()
                    else:
                        continue
                    self._take(worker, found)
                    over = deadline is not None and time.monotonic() > deadline
                    if over or not self._assign(worker):
                        busy.remove(worker)
        finally:
            for worker in crew:
                worker.stop()

    def _assign(self, worker: "Worker") -> bool:
        """Give the next batch of the target that is furthest behind; False if none is left."""
        left = [name for name, count in self.wanted.items() if self._next[name] < count]
        if not left:
            return False
        name = min(left, key=lambda one: self._next[one] / self.wanted[one])
        start = self._next[name]
        self._next[name] = min(start + BATCH, self.wanted[name])
        worker.work(name, start, self._next[name])
        return True

    def _take(self, worker: "Worker", found: list[tuple[bytes, str]]) -> None:
        name, start, stop = worker.task
        self.done[name] += stop - start
        for data, complaint in found:
            path = FINDINGS / name / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            self.findings[f"{name}: {complaint}"] += 1
            print(f"\n{path}: {complaint}")
        if time.monotonic() - self._told > 5:
            self._told = time.monotonic()
            self.save()
            done, wanted = sum(self.done.values()), sum(self.wanted.values())
            rate = (done - self._first) / (time.monotonic() - self._began)
            line = f"{done:,} of {wanted:,} inputs, {rate:.0f} a second, {sum(self.findings.values())} findings"
            print(f"\r{line}", end="" if sys.stdout.isatty() else "\n", flush=True)

    def save(self) -> None:
        """Keep how far every target is, so that a later run goes on from there."""
        PROGRESS.parent.mkdir(exist_ok=True)
        kept = json.loads(PROGRESS.read_text(encoding="utf-8")) if PROGRESS.exists() else {}
        kept[str(self.seed)] = {**kept.get(str(self.seed), {}), **self.done}
        PROGRESS.write_text(json.dumps(kept, indent=2), encoding="utf-8")

    def tell(self) -> None:
        """Say how much was done, and what was found."""
        print()
        for name, count in self.done.items():
            print(f"{name:12s} {count:>9,} of {self.wanted[name]:,}")
        print(f"{sum(self.done.values()):,} inputs, {sum(self.findings.values())} findings")
        for complaint, count in self.findings.most_common():
            print(f"{count:>6} {complaint}")


class Worker:
    """A process that reads inputs: what kills it does not kill the run."""

    task: tuple[str, int, int]

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._start()

    def _start(self) -> None:
        # In memory where there is such a place: an input is written, read and forgotten.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  a folder of its own is made there
        self._folder = TemporaryDirectory(dir=memory, ignore_cleanup_errors=True)
        self.answers, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=serve, args=(theirs, self._seed, self._folder.name), daemon=True)
        self._process.start()
        theirs.close()

    def work(self, name: str, start: int, stop: int) -> None:
        """Begin a batch."""
        self.task, self._since = (name, start, stop), time.monotonic()
        self.answers.send(self.task)

    def answer(self) -> list[tuple[bytes, str]]:
        """What the batch has shown."""
        try:
            found: list[tuple[bytes, str]] = self.answers.recv()
        except EOFError:
            return self.replace()
        return found

    def is_lost(self) -> bool:
        """Whether the process is dead, or says nothing any more."""
        return not self._process.is_alive() or time.monotonic() - self._since > PATIENCE

    def replace(self) -> list[tuple[bytes, str]]:
        """Start another process in its place; the input in hand is the finding."""
        self._process.join(timeout=1.0)
        code = self._process.exitcode
        self._process.kill()
        self._process.join()
        last = Path(self._folder.name) / "input"
        data = last.read_bytes() if last.exists() else b""
        self._folder.cleanup()
        self._start()
        return [(data, f"the process died (code {code})" if code is not None else "the process hung")]

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._folder.cleanup()


def serve(requests: Connection, seed: int, folder: str) -> None:
    """Judge the inputs that are asked for, until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.path.insert(0, str(TESTS))
    from fuzz.targets import TARGETS

    place, kept = Path(folder) / "files", Path(folder) / "input"
    place.mkdir()
    while True:
        try:
            name, start, stop = requests.recv()
        except (EOFError, KeyboardInterrupt):
            return
        found: list[tuple[bytes, str]] = []
        for number in range(start, stop):
            data = drawn(TARGETS[name], seed, name, number)
            kept.write_bytes(data)
            complaint = TARGETS[name].judge(data, place)
            if complaint is not None:
                found.append((data, complaint))
        requests.send(found)


def drawn(target: Any, seed: int, name: str, number: int) -> bytes:
    """Input `number` of a target."""
    data: bytes = target.make(random.Random(f"{seed} {name} {number}"))
    return data


if __name__ == "__main__":
    main()
