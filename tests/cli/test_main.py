"""What holds for every command."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onlooker.__main__ import main as entry
from onlooker.base.version import __version__
from onlooker.cli import commands


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_has_help_with_an_example(run, name):
    ran = run(name, "--help")
    assert ran.code == 0
    assert f"onlooker {name} " in ran.out
    assert "Example" in ran.out
    assert "--json" in ran.out


def test_version_and_module(run):
    assert run("--version").out.strip() == f"onlooker, version {__version__}"
    done = subprocess.run([sys.executable, "-m", "onlooker", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"onlooker, version {__version__}"


def test_no_arguments_show_the_help(run):
    ran = run()
    assert ran.code == 2
    assert "Commands:" in ran.err


def test_mistyped_commands_and_options(refused):
    assert "fitt" in refused("fitt", "log.parquet")
    assert "--burnin" in refused("fit", "log.parquet", "--burnin", "3")
    assert "LOG" in refused("fit")


def test_starting_up_loads_nothing_heavy():
    script = "import sys, onlooker, onlooker.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "numba", "pyarrow", "matplotlib", "jinja2", "rich", "narwhals"}
    assert heavy.isdisjoint(done.stdout.split())


def test_help_is_quick():
    """In seconds of the processor: those of a clock depend on what else the machine does."""
    command = [sys.executable, "-m", "onlooker", "--help"]
    subprocess.run(command, capture_output=True, check=True)
    times = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, capture_output=True, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(times) < 0.4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has read in")
def test_ctrl_c_exits_130_and_leaves_no_file(tmp_path):
    arguments = ["simulate", "--rounds", "200000", "--arms", "100", "--out", str(tmp_path / "log.parquet")]
    process = subprocess.Popen(
        [sys.executable, "-m", "onlooker", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # At work, not merely started: it has read the compiler in.
    while "llvmlite" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert re.fullmatch(r"(compiling.*\n)?\n?onlooker: stopped\n", err)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_quietly(tmp_path, run):
    arguments = "compare --rounds 2000 --features 4 --arms 10 --seed 2 --observer rule"
    # Once before, so that nothing is left to compile.
    assert run(*arguments.split()).out.count("\n") > 3
    command = f"{sys.executable} -m onlooker {arguments} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout.startswith("LinUCB")
    assert done.stderr == ""


def test_closed_streams_change_no_exit_code(tmp_path):
    for closed in (">&-", "2>&-"):
        command = f"{sys.executable} -m onlooker fit nosuch.csv {closed}"
        assert subprocess.run(["bash", "-c", command], capture_output=True, cwd=tmp_path, check=False).returncode == 2


def test_output_in_a_pipe_is_plain(run):
    ran = run("compare", "--rounds", 2000, "--features", 4, "--arms", 10, "--seed", 2)
    assert ran.code == 0
    assert "\x1b" not in ran.out + ran.err
    assert ran.err == ""


def test_ctrl_c_while_the_command_is_imported(monkeypatch, capsys):
    class Interrupted:
        def find_spec(self, name, *_):
            if name == "onlooker.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "onlooker.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        entry()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "onlooker: stopped\n"
