"""onlooker beside its rivals: `python benchmarks/run_rivals.py` makes their environments, races, and writes docs/speed.

Every rival gets an environment and a process of its own; all take turns, so that a busy moment of the machine hits all
alike. `--only NAME` (again for more) runs some of them, and onlooker, again; `--table` only rebuilds tables and chart
from the kept JSON. Run it on an idle machine: what counts is the ratios of one race.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rivals.methods import FITS, SIMULATIONS, Method
from rivals.race import race
from rivals.tables import chart, fit_table, simulation_table
from rivals.workloads import LARGE, SMALL, Workload

RACES: dict[str, tuple[Workload, tuple[Method, ...]]] = {
    "fit-large": (LARGE, FITS),
    "fit-small": (SMALL, FITS),
    "simulation": (LARGE, SIMULATIONS),
}


def main() -> None:
    options = _options()
    kept = options.out / "rivals.json"
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    options.out.mkdir(parents=True, exist_ok=True)
    for name in [] if options.table else options.race or RACES:
        workload, methods = RACES[name]
        before = {result["method"]: result for result in found.get(name, {}).get("results", [])}
        chosen = [m for m in methods if not options.only or m.name in options.only or m.kind == "onlooker"]
        machine = _machine()
        results = race(
            chosen,
            workload.folder(options.cache),
            options.cache,
            repeats=options.repeats,
            timeout=options.timeout,
            known={method: result["setting"] for method, result in before.items() if "setting" in result},
        )
        when = datetime.now(UTC).isoformat(timespec="seconds")
        before |= {result["method"]: result | {"when": when} for result in results}
        found[name] = {
            "workload": str(workload),
            "machine": machine,
            "results": [before[method.name] for method in methods if method.name in before],
        }
        kept.write_text(json.dumps(found, indent=1), encoding="utf-8")
    _write(found, options.out)


def _write(found: dict[str, Any], out: Path) -> None:
    """Tables and chart of everything that is kept."""
    parts, panels = [], {}
    for name in RACES:
        if name not in found:
            continue
        kept = found[name]
        what = "Simulation, one round" if name == "simulation" else "Fit"
        table = simulation_table(kept["results"]) if name == "simulation" else fit_table(kept["results"])
        turns = [len(result["runs"]) for result in kept["results"] if result["runs"]]
        often = f"{min(turns)} to {max(turns)}" if min(turns) < max(turns) else f"{max(turns)}"
        parts.append(f"## {what}: {kept['workload']}\n\n{kept['machine']}; medians of {often} turns.\n\n{table}\n")
        panels[f"{what}: {kept['workload']}"] = kept["results"]
    (out / "rivals.md").write_text("\n".join(["# onlooker beside its rivals\n", *parts]), encoding="utf-8")
    chart(panels, out / "rivals.png")
    print("\n".join(parts))


def _machine() -> str:
    """What it runs on, and how busy that is: under a load of its own, ratios are not to be trusted."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"{cores} cores, load {load:.1f} before the start, {platform.system()} {platform.machine()}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="a method, as the tables name it")
    parser.add_argument("--race", action="append", choices=RACES, help="one of the races; all by default")
    parser.add_argument("--repeats", type=int, default=5, help="turns of every method")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that loading or one run may take")
    parser.add_argument("--table", action="store_true", help="rebuild tables and chart from the kept JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "speed")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "onlooker-benchmarks")
    options = parser.parse_args()
    names = {method.name for _, methods in RACES.values() for method in methods}
    unknown = set(options.only or []) - names
    if unknown:
        parser.error(f"no method is called {', '.join(sorted(unknown))}: there are {', '.join(sorted(names))}")
    return options


if __name__ == "__main__":
    main()
