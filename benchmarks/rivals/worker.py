"""A rival at work in a process of its own: `python -m rivals.worker ADAPTER FOLDER`.

It loads the data once and says so; then each line of JSON on its input is one run, answered by one line of JSON. What
libraries print goes to the error stream, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

from rivals.problem import Problem, objective


def main(adapter: str, folder: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    rival = importlib.import_module(f"rivals.adapters.{adapter}")
    problem = Problem.read(Path(folder))
    run = rival.prepare(problem)
    _say(answers, {"settings": list(rival.SETTINGS)})
    for line in sys.stdin:
        order = json.loads(line)
        before = _resident()
        started, busy = time.perf_counter(), time.process_time()
        result = np.asarray(run(order["setting"]))
        seconds, busy = time.perf_counter() - started, time.process_time() - busy
        memory = None if before is None else _status("VmHWM") - before
        judged = _judged(problem, result, penalised=order["penalised"])
        _say(answers, {"seconds": seconds, "processor": busy, "memory": memory, **judged})


def _judged(problem: Problem, result: np.ndarray, *, penalised: bool) -> dict[str, Any]:
    """How far theta is from the minimum, or how many picks are the log's own."""
    if result.dtype.kind == "i":
        return {"rounds": len(result), "same": float(np.mean(result == problem.chosen[: len(result)]))}
    best = problem.optimum(penalised=penalised)
    least, theta = objective(problem, best, penalised=penalised), result.astype(np.float64)
    return {
        "excess": (objective(problem, theta, penalised=penalised) - least) / least,
        "error": float(np.linalg.norm(theta - best) / np.linalg.norm(best)),
    }


def _resident() -> int | None:
    """Bytes in memory, after which the peak is reset; None where the system does not say."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return _status("VmRSS")
    except (OSError, AttributeError):
        return None


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(field)


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
