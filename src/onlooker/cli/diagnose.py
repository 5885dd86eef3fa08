"""`onlooker diagnose`: whether and since when the learner behind a log has settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from onlooker.cli import options
from onlooker.cli.console import prepare_kernels, print_json, progress_bar

if TYPE_CHECKING:
    from onlooker.log import BanditLog


@click.command()
@click.argument("log")
@click.option("--bins", default=10, show_default=True, help="Equal stretches of time to compare.")
@click.option("--level", default=0.95, show_default=True, help="Coverage that the intervals aim for.")
@click.option("--by", metavar="COLUMN", help="Tells learners or restarts apart: each is diagnosed on its own.")
@options.column_options
@options.as_json
def diagnose(log: str, bins: int, level: float, by: str | None, as_json: bool, **columns: Any) -> None:
    """Say whether and since when the learner behind LOG has settled, or whether it explores, drifts or just guesses.

    Examples: onlooker diagnose log.parquet; onlooker diagnose log.csv --by shop --order-by time
    """
    from onlooker import diagnosis

    logs = _read(log, by, columns)
    found = {}
    for dtype in sorted({rounds.features.dtype.name for rounds in logs.values()}):
        prepare_kernels(dtype)
    with progress_bar("diagnosing") as progress:
        for name, rounds in logs.items():
            found[name] = diagnosis.diagnose(rounds, bins, level=level)
            if progress is not None:
                progress(len(found), len(logs))
    if as_json and by is None:
        print_json({"log": log, **found[""].to_dict()})
    elif as_json:
        print_json({"log": log, "by": by, "diagnoses": {name: one.to_dict() for name, one in found.items()}})
    else:
        heads = {name: f"{log}: " if by is None else f"{log}, {by} {name}: " for name in logs}
        click.echo("\n\n".join(f"{heads[name]}{logs[name]!r}\n{one!r}" for name, one in found.items()))


def _read(path: str, by: str | None, columns: dict[str, Any]) -> dict[str, BanditLog]:
    if by is None:
        return {"": options.read_with_columns(path, columns)}
    from onlooker.formats import read_logs

    given = {name: list(value) if name == "features" else value for name, value in columns.items() if value}
    return read_logs(path, by, **given)
