"""Vowpal Wabbit's text format for contextual bandits (ADF): a line per arm, a blank line after each round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

from onlooker.base.errors import InputError
from onlooker.base.types import Vector
from onlooker.formats.format import Format
from onlooker.formats.sparse_log import SparseLog, values_of
from onlooker.formats.text_lines import LogFile, as_text, as_text_file, at_line, numbered_lines
from onlooker.formats.vw_features import LineReader, as_number
from onlooker.logs.categories import Encoded
from onlooker.logs.log import BanditLog, feature_labels

_FORBIDDEN = re.compile(r"[ \t\n\r\v\f\0|:]")
PICKED = "0:0:1 "
"""The format wants a cost and a probability. An observer knows neither: 0 and 1 stand in for them."""


def write(log: BanditLog, target: BinaryIO, *, compress: bool = False, propensities: Vector | None = None) -> None:
    """Write every value so that it reads back exactly; zeros only on the first line, which names the features.

    `propensities`, one per row, give the label its probability.
    """
    names = [_parted(name) for name in _names(log)]
    with as_text_file(target, compress=compress) as file:
        first, ids = True, log.arm_ids
        for t in range(log.n_rounds):
            if log.round_ids is not None:
                file.write(f"shared {_tag(log.round_ids[t], 'round')}|\n")
            for k, row in enumerate(values_of(log, t, zeros=first)):
                label = _label(log, t, propensities) if k == log.chosen[t] else ""
                tag = "" if ids is None else _tag(ids[log.offsets[t] + k], "arm")
                file.write(f"{label}{tag}{''.join(_feature_words(names, row)) or '|'}\n")
            first = False
            file.write("\n")


def _names(log: BanditLog) -> Sequence[str]:
    """A feature's name; where each arm has weights of its own, the arm is the namespace."""
    crossing = log.crossing
    if crossing is None or crossing.arms is None or not crossing.context:
        return feature_labels(log.weight_names, log.n_features)
    return [*crossing.own, *(f"{arm}^{name}" for arm in crossing.arms for name in crossing.context)]


def _label(log: BanditLog, t: int, propensities: Vector | None) -> str:
    return PICKED if propensities is None else f"0:0:{float(propensities[log.offsets[t] + log.chosen[t]])!r} "


def _feature_words(names: Sequence[tuple[str, str]], row: Iterable[tuple[int, float]]) -> Iterator[str]:
    before = None
    for place, value in row:
        namespace, name = names[place]
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


_LABEL = re.compile(rb"\d+(:[^:]*){1,2}")


def read(
    file: LogFile, *, features: Sequence[str] | None = None, cross: bool = False, like: Encoded | None = None
) -> BanditLog:
    """Read blocks of lines; the line with a label `action:cost:probability` is the pick.

    Features are called `namespace^name`, or `name` alone in the nameless namespace; a value that is not a number makes
    a category. Those of a `shared` line are left out, or with `cross` multiplied with every feature of the arms, called
    `shared x arm`. Tags are arm ids if every arm has one, and round ids on the shared lines.
    """
    blocks = _Blocks(SparseLog(features, cross, like))
    number = 0
    for number, line in numbered_lines(file):
        if line and not line.isspace():
            try:
                blocks.take(number, line)
            except InputError as error:
                raise InputError(f"line {number} {error}") from error
        else:
            blocks.end()
    blocks.end()
    return blocks.rounds.log()


class _Blocks:
    """The current block, and the rounds before it."""

    def __init__(self, rounds: SparseLog) -> None:
        self.rounds = rounds
        self._arms = LineReader(rounds.arms)
        self._shared = LineReader(rounds.shared)
        self._start()

    def _start(self) -> None:
        self._first = 0
        self._n_arms = 0
        self._pick: int | None = None
        self._picked_line = 0

    def take(self, number: int, line: bytes) -> None:
        """Read a line of the current block."""
        head, bar, tail = line.partition(b"|")
        if not bar:
            raise InputError("has no '|': features follow one, and a blank line separates the rounds")
        words, tag = _words(head)
        if words[:1] == [b"shared"]:
            self._take_shared(number, words, tag, tail)
            return
        self._first = self._first or number
        if words and _is_pick(words):
            if self._pick is not None:
                raise InputError(
                    f"is labelled, but so is line {self._picked_line} of the same round: a round has one pick, "
                    "and a blank line separates the rounds"
                )
            self._pick, self._picked_line = self._n_arms, number
        if tag:
            self.rounds.arm_ids.append(as_text(tag))
        self._arms.take(tail)
        self.rounds.arms.end_row(number)
        self._n_arms += 1

    def _take_shared(self, number: int, words: list[bytes], tag: bytes, tail: bytes) -> None:
        if self._first:
            raise InputError("is shared, but does not begin its round: put it first, after a blank line")
        if len(words) > 1:
            raise InputError("is shared and carries a label: label the line of the arm that was picked")
        self._first = number
        if tag:
            self.rounds.round_ids.append(as_text(tag))
        self._shared.take(tail)

    def end(self) -> None:
        """A blank line, or the end of the file."""
        if not self._first:
            return
        with at_line(self._first):
            if not self._n_arms:
                raise InputError("begins a round that offers no arm: add one line per arm or leave it out")
            if self._pick is None:
                raise InputError(
                    "begins a round without a pick: label the picked arm's line with action:cost:probability and a "
                    "space, or leave the round out"
                )
        self.rounds.end_round(self._first, self._pick)
        self._start()


def _words(head: bytes) -> tuple[list[bytes], bytes]:
    """Words of the label, and the tag: the last word if it touches the bar or begins with an apostrophe."""
    words = head.split()
    if words and (not head[-1:].isspace() or words[-1].startswith(b"'")):
        return words[:-1], words[-1].removeprefix(b"'")
    return words, b""


def _is_pick(words: list[bytes]) -> bool:
    """Whether the label says what the action cost; other words may be weights."""
    picks = 0
    for word in words:
        if b":" not in word:
            if as_number(word) is None:
                raise InputError(f"has the label {as_text(word)[:40]!r}: write action:cost:probability or nothing")
        elif not _LABEL.fullmatch(word):
            raise InputError(f"has the label {as_text(word)[:40]!r}: write action:cost:probability")
        else:
            picks += 1
    if picks > 1:
        raise InputError(f"has {picks} labels: an arm is picked once, write one action:cost:probability")
    return picks == 1


FORMAT = Format(
    name="VW text",
    suffixes=(".vw", ".txt", ".dat"),
    recognises=lambda _: True,
    read=read,
    write=write,
    by_name=True,
)
GZIPPED = Format(
    name="VW text",
    suffixes=(".vw.gz", ".txt.gz", ".dat.gz"),
    recognises=lambda _: True,
    read=read,
    write=partial(write, compress=True),
    by_name=True,
)
