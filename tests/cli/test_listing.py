"""Files of partitioned folders are listed with what tells them apart."""

import pyarrow as pa
import pyarrow.parquet as pq


def test_folders_by_number_and_with_their_names(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day in (1, 2, 10):
        folder = tmp_path / "log" / f"day={day}"
        folder.mkdir(parents=True)
        rounds = [day * 100 + t // 2 for t in range(20)]
        columns = {"round": rounds, "chosen": [t % 2 for t in range(20)], "price": [t * 7 % 5 / 2 for t in range(20)]}
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
    found = run("fit", "log", "--burn-in", "naive")
    assert found.code == 0, found.err
    order = "day=1/part-0.parquet, day=2/part-0.parquet, day=10/part-0.parquet"
    assert f"3 files, in this order: {order}" in found.out
