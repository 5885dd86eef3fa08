"""Long Parquet: one row per offered arm, one column per feature."""

from collections.abc import Sequence
from pathlib import Path

from onlooker.formats import long
from onlooker.formats.format import Format, arrow_errors, check_memory
from onlooker.log import BanditLog


def read(
    path: Path,
    *,
    round: str = long.ROUND,
    chosen: str = long.CHOSEN,
    arm: str | None = None,
    features: Sequence[str] | None = None,
    order_by: str | None = None,
) -> BanditLog:
    """See `BanditLog.from_frame`; only the columns that are needed are read."""
    import pyarrow.parquet as pq

    with arrow_errors("Parquet"), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        arm = long.arm_column(schema.names, arm)
        keys = long.check_table(schema.names, round=round, chosen=chosen, arm=arm, features=features, order_by=order_by)
        names = long.feature_columns(schema, keys) if features is None else list(features)
        # Once as columns and once as rows.
        check_memory(2 * 8 * file.metadata.num_rows * (len(names) + len(keys)))
        table = file.read(columns=[*keys, *names])
    return BanditLog.from_frame(table, round=round, chosen=chosen, arm=arm, features=names, order_by=order_by)


FORMAT = Format(
    name="long Parquet",
    suffixes=(".parquet", ".pq"),
    recognises=lambda _: True,
    read=read,
    write=None,
)
