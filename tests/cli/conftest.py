"""Run the command line in this process."""

from dataclasses import dataclass

import pytest

from onlooker.cli import main


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    def ran(*arguments):
        monkeypatch.setattr("sys.argv", ["onlooker", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return ran


@pytest.fixture
def refused(run):
    """Run what must be refused: exit 2, nothing on stdout, one line on stderr, which is returned."""

    def line(*arguments):
        ran = run(*arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert ran.err.startswith("onlooker: ")
        assert ran.err.count("\n") == 1
        return ran.err

    return line
