"""Where a command works: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from onlooker.cli.opening import open_log, open_scan
from onlooker.cli.parameters import OneOf
from onlooker.errors import InputError

if TYPE_CHECKING:
    from onlooker.clusters import RayParts
    from onlooker.formats import LogScan
    from onlooker.log import BanditLog

Command = TypeVar("Command", bound=Callable[..., Any])


def engine_options(command: Command) -> Command:
    """`--engine` and `--address`."""
    for option in (
        click.option("--address", metavar="HOST:PORT", help="Of a Ray cluster; one is started here unless said."),
        click.option(
            "--engine",
            default="local",
            show_default=True,
            type=OneOf(["local", "ray"]),
            help="On this machine, or on a Ray cluster (pip install 'onlooker[ray]').",
        ),
    ):
        command = option(command)
    return command


def check_engine(engine: str, address: str | None) -> None:
    """Refuse an address that nobody would use."""
    if engine == "local" and address is not None:
        raise InputError(f"--address {address}: is of a Ray cluster, so add --engine ray")


@contextmanager
def opened(
    path: str, columns: dict[str, Any], engine: str, address: str | None, memory_limit: str | None = None
) -> Iterator[tuple[BanditLog | LogScan | RayParts, list[str]]]:
    """The log that a command names, where it is to be worked on, and what was assumed about it; kernels are ready."""
    check_engine(engine, address)
    if memory_limit is not None:
        if engine != "local":
            raise InputError(f"--memory-limit {memory_limit}: a cluster keeps the log in its workers, so leave it out")
        yield open_scan(path, columns, memory_limit)
        return
    if engine == "local":
        log, assumed = open_log(path, columns)
        yield log, assumed
        return
    from onlooker.clusters import RayParts

    scan, assumed = open_scan(path, columns)
    with RayParts(scan, address=address) as parts:
        yield parts, assumed
