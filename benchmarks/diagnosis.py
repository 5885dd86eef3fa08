"""How often `diagnose` is right, and how often it raises a false alarm: kinds of logs whose learner is known.

    python benchmarks/diagnosis.py [--logs 200] [--first-seed 40000] [--only NAME ...] [--kept FILE] [--page PAGE]

Kinds take turns, so that a run that is stopped has as many logs of each. With `--kept`, what was found is kept in a
file and not made again. `--page` puts the table into a page. Two hundred logs of each kind take about half an hour.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from diagnosis_kinds import KINDS

from onlooker import diagnose
from onlooker.base.files import write_text


def judged(name: str, seed: int) -> dict[str, Any]:
    found = diagnose(KINDS[name].make(seed))
    values, exploration = found.values, found.exploration
    return {
        "kind": name,
        "seed": seed,
        "state": values.state,
        "since": values.since,
        "changed_at": values.changed_at,
        "share": exploration.share,
        "trend": exploration.trend,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """One line a kind."""
    lines = [
        "| log | logs | right | called | *changed* | picks that are not its best guess |",
        "|---|--:|--:|---|--:|--:|",
    ]
    for name, kind in KINDS.items():
        found = [row for row in rows if row["kind"] == name]
        if not found:
            continue
        states = Counter(row["state"] for row in found)
        right = sum(states[state] for state in kind.right) / len(found)
        shares = sorted(row["share"] for row in found if row["share"] is not None)
        share = f"{shares[len(shares) // 2]:.1%}" if shares else ""
        called = ", ".join(f"{state} {count}" for state, count in states.most_common())
        lines.append(
            f"| {kind.words} | {len(found)} | {right:.1%} | {called} | {states['changed'] / len(found):.1%} | {share} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=40_000)
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    kept = options.kept
    lines = kept.read_text(encoding="utf-8").splitlines() if kept is not None and kept.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["kind"], row["seed"]) for row in rows}
    for seed in range(options.first_seed, options.first_seed + options.logs):
        for name in options.only:
            if (name, seed) in done:
                continue
            rows.append(judged(name, seed))
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        print(f"\r{seed - options.first_seed + 1} of {options.logs}", end="", file=sys.stderr)
    print(file=sys.stderr)
    text = table(rows)
    print(text)
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        marked = re.compile(r"(<!-- table -->\n).*?(\n<!-- end of table -->)", re.DOTALL)
        write_text(options.page, marked.sub(lambda found: f"{found[1]}{text}{found[2]}", page))


if __name__ == "__main__":
    main()
