"""No traceback and no silent death, whatever a command is given and wherever it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker import BanditLog, Environment, LinearPolicy, LinUCB, simulate, write_log

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams, limits and names of the kind that POSIX has")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_log(simulate(Environment(3, 5), LinUCB(), n_rounds=300).log, path)
    return path


def shell(line, **options):
    """Run a line of bash in which $O is the command."""
    env = {**os.environ, "O": f"{sys.executable} -m onlooker"}
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=env, **options)
    assert "Traceback" not in ran.stderr
    assert "fault of onlooker" not in ran.stderr
    return ran


def test_closed_streams(log, tmp_path):
    out = tmp_path / "policy.json"
    assert shell(f"$O fit {log} --out {out} <&- >&- 2>&-").returncode == 0
    # Nothing that was printed got into a file that took the place of a stream.
    assert len(LinearPolicy.load(out).theta) == 3
    assert shell(f"$O fit {log}.no 2>&-").returncode == 2
    assert shell(f"$O fit {log}.no >&- 2>/dev/full").returncode == 2


def test_a_pipe_that_is_closed_early_and_a_full_device(log, tmp_path):
    out = tmp_path / "policy.json"
    ran = shell(f"set -o pipefail; $O fit {log} --out {out} | true")
    assert ran.returncode in {0, 1}
    assert ran.stderr.count("\n") <= 2
    assert out.exists()
    ran = shell(f"$O convert {log} {tmp_path}/log.csv --json > /dev/full")
    assert ran.returncode == 2
    assert "No space left" in ran.stderr
    assert "free some space" in ran.stderr


def test_names_that_are_not_utf_8(log, tmp_path, run):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    for suffix in (".parquet", ".csv", ".jsonl", ".csv.gz"):
        path = folder / os.fsdecode(b"log\xfe" + suffix.encode())
        assert run("convert", log, path).code == 0
        ran = run("fit", path, "--json", "--out", folder / os.fsdecode(b"policy\xff.json"))
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["log"] == str(path)
        ran.out.encode()
    path = folder / os.fsdecode(b"log\xfe.parquet")
    state, chart, page = (folder / os.fsdecode(name) for name in (b"s\xff.json", b"c\xff.svg", b"r\xff.html"))
    ran = run("track", path, "--state", state, "--chart", chart)
    assert (ran.code, state.exists(), chart.exists()) == (0, True, True)
    ran.out.encode()
    assert run("report", path, "--out", page).code == 0
    assert "charset" in page.read_text("utf-8")
    assert run("diagnose", folder / os.fsdecode(b"none\xff.csv")).err.count("\n") == 1
    assert run("fit", path, "--out", folder / os.fsdecode(b"no\xff") / "policy.json").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "LOG", "--out", "TARGET"),
        ("track", "LOG", "--out", "TARGET"),
        ("track", "LOG", "--state", "TARGET"),
        ("report", "LOG", "--out", "TARGET"),
        ("simulate", "--out", "log.csv", "--truth", "TARGET"),
        ("demo", "--out", "TARGET"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["/dev/null", "fifo", "stdout"])
def test_what_cannot_be_replaced_is_refused_before_any_work(refused, log, tmp_path, monkeypatch, arguments, kind):
    monkeypatch.setattr("onlooker.formats.opening.open_log", lambda *_, **__: pytest.fail("the log was read"))
    target = Path(kind)
    if kind == "fifo":
        target = tmp_path / "fifo"
        os.mkfifo(target)
    if kind == "stdout":
        target = tmp_path / "printed.txt"
        target.write_text("before")
        state = target.stat()
        monkeypatch.setattr("onlooker.base.files.os.fstat", lambda _: state)
    line = refused(*({"LOG": log, "TARGET": target}.get(word, word) for word in arguments))
    assert "is where this command prints" in line or "is a device or a pipe" in line


def test_a_policy_that_is_written_to_where_the_summary_goes(log, tmp_path):
    ran = shell(f"$O fit {log} --out /dev/stdout > {tmp_path}/printed.txt")
    assert ran.returncode == 2
    assert "is where this command prints" in ran.stderr


def test_a_working_folder_that_is_gone(log, tmp_path):
    gone = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone"
    assert shell(f"{gone}; $O fit {log} --out {tmp_path}/policy.json").returncode == 0
    ran = shell(f"{gone}; $O report {log}")
    assert ran.returncode == 2
    assert ran.stderr.startswith("onlooker: report.html: cannot be written, the working folder is gone")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold processes to such limits")
@pytest.mark.parametrize("kilobytes", [100_000, 400_000, 700_000, 1_000_000])
def test_too_little_address_space(log, kilobytes):
    ran = shell(f"ulimit -v {kilobytes}; $O fit {log}")
    assert ran.returncode in {0, 2}
    if ran.returncode:
        assert "memory ran out" in ran.stderr.splitlines()[-1]
        assert "ulimit -v" in ran.stderr
        assert "free some space" not in ran.stderr


def test_a_small_stack(log):
    ran = shell(f"ulimit -s 128; $O fit {log}")
    assert ran.returncode in {0, 2}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "memory ran out"),
        (RuntimeError("can't start new thread"), "memory ran out"),
        (OSError(12, "Cannot allocate memory"), "memory ran out"),
        (OSError(28, "No space left on device", "log.csv"), "log.csv: cannot be read or written"),
        (RecursionError("maximum recursion depth exceeded"), "a fault of onlooker's own"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_of_the_machine_are_one_line(run, log, monkeypatch, error, said):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("onlooker.formats.opening.open_log", fail)
    ran = run("fit", log)
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.code == (1 if "fault" in said else 2)
    assert ("free some space" in ran.err) == (getattr(error, "errno", 0) == 28)


def test_json_escapes_what_commands_a_terminal(run, tmp_path):
    odd = "a\x1b\x7f\x85\x9b\u061c\u200b\u200f\u2028\u202e\u2066\ufeff\U000e0041 caf\xe9"
    path = tmp_path / "log.parquet"
    features = np.random.default_rng(0).normal(size=(200, 2))
    write_log(BanditLog(features, np.arange(0, 201, 2), np.zeros(100, dtype=int), feature_names=[odd, "b"]), path)
    ran = run("fit", path, "--json")
    assert all(letter.isprintable() or letter == "\n" for letter in ran.out)
    assert json.dumps(odd) in json.dumps(json.loads(ran.out))
    assert "caf\xe9" in ran.out
    plain = run("fit", path)
    assert all(letter.isprintable() or letter == "\n" for letter in plain.out + plain.err)
