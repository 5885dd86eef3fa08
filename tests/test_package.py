"""The package as a whole: public names, what the README says, files that must agree."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

import onlooker
from onlooker.cli import main

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "onlooker"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_public_name_is_there_and_known_to_type_checkers():
    tree = ast.parse(Path(onlooker.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.asname for node in block.body for alias in node.names}
    assert typed == set(onlooker.__all__)
    for name in onlooker.__all__:
        assert getattr(onlooker, name).__name__ == name
        assert name in dir(onlooker)
    with pytest.raises(AttributeError, match="nonsense"):
        onlooker.nonsense  # noqa: B018


def test_the_readmes_table_is_what_the_demo_prints(tmp_path, monkeypatch, capsys):
    """Errors to 5%: the last digits of a simulation depend on the processor."""
    monkeypatch.setattr("sys.argv", ["onlooker", "demo", "--out", str(tmp_path / "page.html")])
    main()
    printed = capsys.readouterr().out
    row = re.compile(
        r"^(learner \(sees rewards\)|suffix imitation, [^ ]+(?: [^ ]+)*?) {2,}(?:(\d+) +)?(0\.\d+)", re.MULTILINE
    )
    ours, shown = row.findall(printed), row.findall(README)
    assert len(ours) == len(shown) == 5
    for (name, burn_in, error), (name_shown, burn_in_shown, error_shown) in zip(ours, shown, strict=True):
        assert (name, burn_in) == (name_shown, burn_in_shown)
        assert float(error) == pytest.approx(float(error_shown), rel=0.05)


def test_the_documentation_names_files_that_exist():
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_the_map_names_every_module_and_none_that_is_not_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    the_map = text.partition("## Map of the source")[2].partition("## Adding things")[0]
    rows = dict(re.findall(r"^\| `(\w+)/` (\|.+)$", the_map, re.MULTILINE))
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {*rows} == rooms
    for room, row in rows.items():
        there = {path.name for path in (SOURCE / room).glob("*.py")} - {"__init__.py"}
        if room != "cli":  # a command's file has its name
            assert {*there} <= {*re.findall(r"`(\w+\.py)`", row)}, room
        every = {path.name for path in (SOURCE / room).rglob("*.py")}
        assert {*re.findall(r"`(\w+\.py)`", row)} <= every, room


def test_the_picture_of_the_architecture_is_drawn_from_the_source(monkeypatch):
    """Its boxes and lines; sizes are rounded, and may lag behind."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from draw_architecture import picture

    drawn = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    sizes = re.compile(r"\d+ files, [\d,]+ lines")
    assert sizes.sub("", drawn) == sizes.sub("", picture())


def test_the_architecture_page_has_the_layers_that_are_enforced():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    bottom_up = enumerate(reversed(contract["layers"]))
    enforced = {name.strip(): number for number, layer in bottom_up for name in layer.split("|")}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", page, re.MULTILINE)
    shown = {name: int(number) for number, modules in rows for name in re.findall(r"\[`(\w+)`\]", modules)}
    assert shown == enforced


def test_no_dependency_file_holds_an_address():
    for path in [*(ROOT / "requirements").iterdir(), ROOT / "pyproject.toml"]:
        assert not re.search(r"https?://|index-url", path.read_text(encoding="utf-8")), path.name


def test_the_readme_tells_the_verdicts_of_the_committed_run():
    claims = {
        claim["key"]: claim for claim in json.loads((ROOT / "docs/paper/claims.json").read_text(encoding="utf-8"))
    }
    u_shape = next(claim for claim in claims.values() if "U-shaped" in claim["text"] and "/" not in claim["key"])
    assert f"significant in {u_shape['ours'].removesuffix(' panels')} panels" in README
    verdicts = {claim["text"]: claim["verdict"] for claim in claims.values() if "/" not in claim["key"]}
    for words, verdict in {
        "naive imitation is worse than the learner": "holds",
        "the rule N^0.9 beats naive": "holds",
        "falls like N^-1/2 or faster": "holds",
        "beats the learner at the longest horizon": "does not hold",
        "Spearman's r": "holds",
        "easier to predict": "holds",
        "ten side by side": "holds",
        "overlapping by half": "does not hold",
    }.items():
        found = [verdicts[text] for text in verdicts if words in text]
        assert found
        assert set(found) == {verdict}
