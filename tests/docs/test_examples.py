"""Every example of the README and the pages: it runs, and prints what the page says.

The blocks of a page run one after the other in one folder, Python blocks in one namespace. In a `console` block,
`$ onlooker ...` must succeed; `$ make ...` and `$ python FILE` must name something that exists. Lines below a command,
and a `text` block below a Python block, are what it prints: the same words, numbers to a tenth, `...` for what is left
out. A block below the comment `<!-- not run: reason -->` is not run, and listed here.
"""

import re
import shlex
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from onlooker import Environment, EpsilonGreedy, OnlookerWarning, simulate, write_log
from onlooker.cli import main

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
NOT_RUN = {
    ("docs/places.md", "$ onlooker fit 's3://bucket/logs/year=2024/**/*.parquet' --memory-limit 2GB"),
    ("README.md", "$ onlooker reproduce --seeds 20 --out onlooker-paper"),
    ("docs/methods.md", "$ onlooker compare log.parquet"),
    ("docs/scaling_out.md", "$ pip install 'onlooker[ray]'"),
    ("docs/scaling_out.md", "$ ss -ltnp | grep -E 'ray|gcs_server|python'"),
    ("docs/scaling_out.md", "from onlooker import RayParts, SuffixImitation, burn_in_sweep, scan_log"),
}
SUPPOSED = {
    "docs/places.md": ("logs/day1.parquet", "logs/day2.parquet"),
    "docs/hostile_input.md": ("visits.parquet",),
    "docs/larger_than_memory.md": ("logs/day1.parquet", "logs/day2.parquet"),
}
"""Logs that a page takes for granted."""
LONG = {"docs/paper_in_ten_minutes.md"}
"""Pages that play the paper's own setting, for as long as that takes."""
FENCE = re.compile(r"(?ms)(?:<!-- (?P<reason>not run: .+?) -->\n+)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@dataclass
class Block:
    kind: str
    body: str
    reason: str | None
    follows: str
    """What stands between the block before and this one."""


def blocks_of(page):
    text, end, found = (ROOT / page).read_text(encoding="utf-8"), 0, []
    for match in FENCE.finditer(text):
        found.append(Block(match["kind"], match["body"], match["reason"], text[end : match.start()].strip()))
        end = match.end()
    return found


def first_line(block):
    return block.body.splitlines()[0].split("  ")[0]


class Reader:
    """Somebody who types in what a page shows, and looks whether the same comes out."""

    def __init__(self, monkeypatch):
        self.names = {"__name__": "page"}
        self.monkeypatch = monkeypatch
        # A limit on memory is checked against what the process holds already: here all that other tests have left.
        monkeypatch.setattr("onlooker.base.memory_limit.resident", lambda: 0)

    def read(self, blocks):
        said = None
        for block in blocks:
            if block.reason is None and block.kind == "python":
                said = self.printed(exec, compile(block.body, "page", "exec"), self.names)
            elif block.reason is None and block.kind == "console":
                self.type_in(block.body)
            elif block.kind == "text" and said is not None and not block.follows:
                assert_shown(block.body, said)
            if block.kind != "python":
                said = None

    def type_in(self, body):
        before, *commands = re.split(r"^\$ ", body.replace("\\\n", ""), flags=re.MULTILINE)
        assert not before
        for command in commands:
            line, _, shown = command.partition("\n")
            assert_shown(shown, self.run(*shlex.split(line, comments=True)))

    def run(self, program, *arguments):
        match program, *arguments:
            case "onlooker", *_:
                self.monkeypatch.setattr("sys.argv", [program, *arguments])
                return self.printed(main)
            case "make", target, *_:
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
            case "python", script, *_:
                assert (ROOT / script).is_file(), script
            case other:
                assert other == (".", ".venv/bin/activate")
        return ""

    @staticmethod
    def printed(call, *arguments):
        """What it prints; an error or an exit code fails the test."""
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings():
            # What a log cannot tell is told to the reader too, and no reason to stop.
            warnings.simplefilter("ignore", OnlookerWarning)
            call(*arguments)
        return out.getvalue()


def assert_shown(shown, printed):
    """What is shown is printed: line ends aside, and with `...` for what is left out."""
    words, place = printed.split(), 0
    for piece in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        wanted = piece.split()
        starts = range(place, len(words) - len(wanted) + 1)
        fits = (k for k in starts if all(map(alike, wanted, words[k : k + len(wanted)])))
        place = next(fits, None)
        assert place is not None, f"not printed: {piece}\n\n{printed}"
        place += len(wanted)


def alike(shown, printed):
    """Whether two words are the same, but for the last digits of their numbers and the width of a rule."""
    if re.sub("-+", "-", NUMBER.sub("#", shown)) != re.sub("-+", "-", NUMBER.sub("#", printed)):
        return False
    ours, theirs = ([float(n.replace(",", "")) for n in NUMBER.findall(word)] for word in (shown, printed))
    return ours == pytest.approx(theirs, rel=0.1, abs=0.01)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in LONG)) for page in PAGES if blocks_of(page)],
)
def test_the_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, path in enumerate(SUPPOSED.get(page, ())):
        Path(path).parent.mkdir(exist_ok=True)
        write_log(simulate(Environment(5, 10), EpsilonGreedy(0.1), 1000, seed=number).log, path)
    Reader(monkeypatch).read(blocks_of(page))


def test_what_is_not_run_is_known():
    marked = {(page, first_line(block)) for page in PAGES for block in blocks_of(page) if block.reason}
    assert marked == NOT_RUN


def test_every_fence_is_a_block_of_a_known_kind():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        blocks = blocks_of(page)
        assert {block.kind for block in blocks} <= {"python", "console", "text"}, page
        directives = len(re.findall(r"^```\{", text, flags=re.MULTILINE))
        assert text.count("```") == 2 * (len(blocks) + directives), page


def test_a_wrong_example_is_found(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    reader = Reader(monkeypatch)
    example = Block("python", "print('settled since', 1_230)", None, "")
    reader.read([example, Block("text", "settled since 1,200", None, "")])
    for wrong in ("exploring since 1,230", "settled since 900"):
        with pytest.raises(AssertionError, match="not printed"):
            reader.read([example, Block("text", wrong, None, "")])
    with pytest.raises(ZeroDivisionError):
        reader.read([Block("python", "1 / 0", None, "")])
    with pytest.raises(SystemExit):
        reader.read([Block("console", "$ onlooker fit nothing.csv\n", None, "")])
    with pytest.raises(AssertionError):
        reader.read([Block("console", "$ curl example.org\n", None, "")])
    with pytest.raises(AssertionError):
        reader.read([Block("console", "$ make nothing\n", None, "")])
