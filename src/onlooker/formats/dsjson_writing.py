"""Logs as DSJSON: one event a line, with what the format cannot do without."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, BinaryIO

from onlooker.errors import InputError
from onlooker.formats.text_lines import as_text_file
from onlooker.log import BanditLog, feature_labels


def write(log: BanditLog, target: BinaryIO, *, compress: bool = False) -> None:
    """Write every value so that it reads back exactly; zeros only in the first arm, which names the features.

    The format wants a cost and probabilities. An observer knows neither: 0 and 1 stand in for them.
    """
    paths = _paths(feature_labels(log.feature_names, log.n_features))
    with as_text_file(target, compress=compress) as file:
        for t in range(log.n_rounds):
            rows = log.arms(t).astype(float).tolist()
            arms = [_arm(paths, row, zeros=t == 0 and k == 0) for k, row in enumerate(rows)]
            if log.arm_ids is not None:
                for arm, name in zip(arms, log.arm_ids[log.offsets[t] : log.offsets[t + 1]].tolist(), strict=True):
                    arm["_tag"] = str(name)
            event = _event(int(log.chosen[t]), arms)
            if log.round_ids is not None:
                event["EventId"] = str(log.round_ids[t])
            json.dump(event, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")


def _event(pick: int, arms: list[dict[str, Any]]) -> dict[str, Any]:
    others = [k for k in range(len(arms)) if k != pick]
    return {
        "_label_cost": 0,
        "_label_probability": 1,
        "_label_Action": pick + 1,
        "_labelIndex": pick,
        "Version": "1",
        "a": [pick + 1, *(k + 1 for k in others)],
        "p": [1] + [0] * len(others),
        "c": {"_multi": arms},
    }


def _arm(paths: Sequence[tuple[str, str]], row: Sequence[float], *, zeros: bool) -> dict[str, Any]:
    arm: dict[str, Any] = {}
    for (namespace, name), value in zip(paths, row, strict=True):
        if value or zeros:
            (arm.setdefault(namespace, {}) if namespace else arm)[name] = value
    return arm


def _paths(names: Sequence[str]) -> list[tuple[str, str]]:
    """Namespace, or nothing, and name of every feature."""
    parted = [name.partition("^") for name in names]
    runs = Counter(namespace for namespace, _ in groupby(parts[0] for parts in parted))
    paths: list[tuple[str, str]] = []
    for name, (namespace, _, rest) in zip(names, parted, strict=True):
        if name.startswith("_"):
            raise InputError(f"DSJSON cannot hold a feature called {name!r}: rename it without the leading underscore")
        # Where an object would change the features' order or hide one, a key with the mark in it reads the same.
        nested = namespace and rest and not rest.startswith("_") and runs[namespace] == 1 and namespace not in names
        paths.append((namespace, rest) if nested else ("", name))
    return paths
