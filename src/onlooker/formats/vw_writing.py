"""Logs as Vowpal Wabbit's text: one line an arm, the pick labelled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from onlooker.errors import InputError
from onlooker.formats.text_lines import as_text_file
from onlooker.log import BanditLog, feature_labels

_FORBIDDEN = re.compile(r"[ \t\n\r\v\f\0|:]")
PICKED = "0:0:1 "
"""The format wants a cost and a probability. An observer knows neither: 0 and 1 stand in for them."""


def write(log: BanditLog, target: BinaryIO, *, compress: bool = False) -> None:
    """Write every value so that it reads back exactly; zeros only on the first line, which names the features."""
    names = [_parted(name) for name in feature_labels(log.feature_names, log.n_features)]
    with as_text_file(target, compress=compress) as file:
        first = True
        for t in range(log.n_rounds):
            if log.round_ids is not None:
                file.write(f"shared {_tag(log.round_ids[t], 'round')}|\n")
            for k, row in enumerate(log.arms(t).astype(float).tolist()):
                label = PICKED if k == log.chosen[t] else ""
                tag = "" if log.arm_ids is None else _tag(log.arm_ids[log.offsets[t] + k], "arm")
                file.write(f"{label}{tag}{''.join(_words(names, row, zeros=first)) or '|'}\n")
                first = False
            file.write("\n")


def _words(names: Sequence[tuple[str, str]], row: Sequence[float], *, zeros: bool) -> Iterator[str]:
    before = None
    for (namespace, name), value in zip(names, row, strict=True):
        if value or zeros:
            if namespace != before:
                yield f"|{namespace} " if before is None else f" |{namespace} "
            else:
                yield " "
            yield f"{name}:{value!r}"
            before = namespace


def _parted(name: str) -> tuple[str, str]:
    """Namespace and name of a feature."""
    namespace, mark, rest = name.partition("^")
    parts = (namespace, rest) if mark and namespace and rest else ("", name)
    if not name or _FORBIDDEN.search(name):
        raise InputError(f"VW text cannot hold a feature called {name!r}: rename it without blanks, '|' and ':'")
    return parts


def _tag(name: object, of: str) -> str:
    tag = str(name)
    if not tag or _FORBIDDEN.search(tag.replace(":", "")):
        raise InputError(f"VW text cannot hold the {of} id {tag!r}: write it without blanks and '|'")
    return f"'{tag} "
