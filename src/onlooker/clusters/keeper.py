"""What a worker does for a log: it keeps its parts in memory and runs tasks on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onlooker.clusters.shares import Share
from onlooker.errors import InputError
from onlooker.formats import LogScan
from onlooker.formats.unchanged import Held
from onlooker.log import BanditLog
from onlooker.parts import Task


@dataclass(frozen=True)
class Span:
    """Rounds of a part that a task is run on."""

    part: int
    """Number of the part."""
    held: Held
    """What the part held when it was first read, by whichever worker."""
    begin: int
    """First round of it, counted within the part."""
    end: int
    """Before which round it ends."""
    first: int
    """Which round of the log that first one is."""


class Keeper:
    """Parts of a log, loaded when they are first needed: by the first task, or by a worker that takes over."""

    def __init__(self, scan: LogScan) -> None:
        self._scan = scan
        self._kept: dict[Share, dict[int, BanditLog]] = {}

    def __call__(
        self, share: Share, task: Task[Any] | None = None, spans: Sequence[Span] = ()
    ) -> list[tuple[int, Any]]:
        """Number and result of every span's part.

        Without a task, number of every part that was come upon, with what it held and whether it is kept.
        """
        if share not in self._kept:
            self._kept[share] = dict(share.read(self._scan))
        parts = self._kept[share]
        if task is None:
            return [(number, (held, number in parts)) for number, held in self._scan.held.known.items()]
        return [(span.part, task(self._part(parts, span)[span.begin : span.end], span.first)) for span in spans]

    def _part(self, parts: dict[int, BanditLog], span: Span) -> BanditLog:
        part = parts.get(span.part)
        if part is None or self._scan.held.known[span.part] != span.held:
            raise InputError(f"{self._scan.name}: the log has changed since it was opened: run this again")
        return part
