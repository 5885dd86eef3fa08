"""Completion in real shells: what TAB gives."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

SHELLS = ("bash", "zsh", "fish")
COMMANDS = {"compare", "completion", "convert", "demo", "diagnose", "fit", "report", "reproduce", "simulate", "track"}


class Terminal:
    """An interactive bash that knows the script, in a folder of its own."""

    def __init__(self, folder, environment):
        self._end, inner = pty.openpty()
        command = ["bash", "--norc", "--noprofile", "-i"]
        self._shell = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, cwd=folder, env=environment, start_new_session=True
        )
        os.close(inner)
        self._type("bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; stty cols 200; PS1='> '\n")
        self._type('eval "$(onlooker completion bash)"; echo "is ""ready"\n', until="is ready")

    def _type(self, text, until="", seconds=20.0):
        """Type; give what the terminal shows once `until` is there and it has fallen silent."""
        os.write(self._end, text.encode())
        seen, ends = "", time.monotonic() + seconds
        while time.monotonic() < ends:
            if select.select([self._end], [], [], 0.05)[0]:
                seen += os.read(self._end, 65536).decode(errors="replace")
            elif until in seen:
                return seen
        raise AssertionError(f"{until!r} did not come: {seen!r}")

    def complete(self, line, until):
        """Type a line and TAB twice; give what the terminal shows once `until` is there, and clear the line."""
        seen = self._type(line + "\t\t", until=until)
        self._type("\x15")
        return seen

    def close(self):
        os.write(self._end, b"\x15exit\n")
        self._shell.wait(timeout=20)
        os.close(self._end)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    (folder / "journey.parquet").touch()
    (folder / "results").mkdir()
    scripts = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C"}
    opened = Terminal(folder, environment)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("onlooker diag", "onlooker diagnose "),
        ("onlooker fit jour", "onlooker fit journey.parquet "),
        ("onlooker fit journey.parquet --burn-", "--burn-in "),
        ("onlooker fit journey.parquet --burn-in na", "--burn-in naive "),
        ("onlooker simulate --learner eps", "--learner epsilon-greedy "),
        ("onlooker compare --observer non", "--observer nonparametric "),
        ("onlooker reproduce --out res", "--out results/"),
        ("onlooker track journey.parquet --like jour", "--like journey.parquet "),
    ],
)
def test_bash_completes(terminal, typed, found):
    assert found in terminal.complete(typed, until=found)


def test_bash_lists_what_may_follow(terminal):
    listed = terminal.complete("onlooker ", until="track")
    assert set(re.findall(r"[a-z]+", listed)) >= COMMANDS


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell, tmp_path):
    """Their scripts are asked as a shell does without a terminal, where there is such a shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = {
        "zsh": 'autoload -U compinit; compinit -u -D; eval "$(onlooker completion zsh)"; echo $_comps[onlooker]',
        "fish": "onlooker completion fish | source; complete -C 'onlooker diag'",
    }[shell]
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert {"zsh": "_onlooker_completion", "fish": "diagnose"}[shell] in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_asks_for_what_may_follow(shell, run, monkeypatch):
    script = run("completion", shell).out
    assert f"_ONLOOKER_COMPLETE={shell}_complete" in script
    monkeypatch.setenv("_ONLOOKER_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "onlooker diag")
    monkeypatch.setenv("COMP_CWORD", "diag" if shell == "fish" else "1")
    answer = run()
    assert answer.code == 0
    assert re.search(r"\bplain\b\s*,?\s*diagnose\b", answer.out)
    assert "convert" not in answer.out


def test_the_script_as_json(run):
    assert '"shell": "bash"' in run("completion", "bash", "--json").out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("digagnose", "log.csv"), "'diagnose'"),
        (("complitoin", "bash"), "'completion'"),
        (("fit", "log.csv", "--burnin", "3"), "'--burn-in'"),
        (("simulate", "--learner", "linucbb", "--out", "log.csv"), "'linucb'"),
        (("fit", "log.csv", "--loss", "softmx"), "'softmax'"),
        (("fit", "log.csv", "--engine", "rya"), "'ray'"),
        (("completion", "bsh"), "'bash'"),
        (("compare", "--observer", "trackin"), "'tracking'"),
    ],
)
def test_what_was_probably_meant(refused, typed, meant):
    line = refused(*typed)
    assert "did you mean" in line.lower()
    assert meant in line


@pytest.mark.parametrize("option", ["--round", "--chosen", "--feature", "--category", "--arm", "--order-by", "--by"])
def test_which_column_was_probably_meant(refused, tmp_path, option):
    log = tmp_path / "log.csv"
    log.write_text("visit,bought,item,price,shop,hour\n1,1,a,2,x,1\n1,0,b,3,x,1\n2,0,a,1,x,2\n2,1,b,4,x,2\n")
    known = {"--round": "visit", "--chosen": "bought"}
    columns = [word for pair in (known | {option: "Pirce"}).items() for word in pair]
    line = refused("diagnose", log, *columns)
    assert "did you mean 'price'?" in line
    assert str(log) in line


def test_a_word_like_no_other_has_no_suggestion(refused):
    assert "mean" not in refused("fit", "log.csv", "--loss", "quadratic")
