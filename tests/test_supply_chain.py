"""What is locked, by which licence, and that a build which differs is noticed."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

import make_dist  # noqa: E402  found through the line above

LOCKS = sorted(ROOT.glob("requirements/*.txt"))


def locked(name):
    """Versions by name."""
    pins = {}
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    for package, version in re.findall(r"(?m)^([a-z0-9._-]+)==(\S+)", text):
        pins.setdefault(package, []).append(version)
    return pins


def recipe(target):
    """Commands of the Makefile, lines that go on joined."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.search(rf"(?m)^{target}:.*\n((?:\t.*\n)+)", text)[1]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_holds_pins_and_hashes_and_no_address(lock):
    entries = re.split(r"(?m)^(?=\S)", lock.read_text(encoding="utf-8"))[1:]
    assert entries
    for entry in entries:
        pin, *hashes = entry.replace("\\\n", "\n").split("\n")
        assert re.fullmatch(r"[a-z0-9._-]+==[^\s;]+( ; [^:]+)?", pin.strip())
        assert [line for line in hashes if line.strip()]
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line.strip()) for line in hashes if line.strip())


def test_what_runs_is_a_part_of_what_is_tested():
    run, dev = (locked(name) for name in ("run.txt", "dev.txt"))
    assert all(dev[name] == versions for name, versions in run.items())
    assert not {"pip-audit", "statsmodels", "pytest"} & run.keys()


def test_the_list_of_licences_is_that_of_the_lock():
    """Every package that runs, in a version that is locked; where there are two, some Python takes either."""
    page = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| ([\w.-]+) +\| (\S+) +\| (.*?) +\|$", page)[1:]
    listed = {re.sub(r"[-_.]+", "-", name.lower()): version for name, version, _ in rows}
    pins = locked("run.txt")
    assert listed.keys() == pins.keys()
    assert all(version in pins[name] for name, version in listed.items())
    assert all(licence and licence != "UNKNOWN" for _, _, licence in rows)


def test_every_lock_is_audited_and_what_cannot_be_asked_about_is_a_failure():
    words = recipe("audit").split()
    assert words[0].endswith("/pip-audit")
    assert {"--strict", "--require-hashes"} <= set(words)
    assert {f"requirements/{lock.name}" for lock in LOCKS} == {
        words[k + 1] for k, word in enumerate(words) if word == "-r"
    }


def test_builds_that_differ_are_noticed(tmp_path):
    for folder, content in (("first", b"a"), ("second", b"a"), ("third", b"b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "onlooker.whl").write_bytes(content)
    first, second, third = (sorted((tmp_path / name).iterdir()) for name in ("first", "second", "third"))
    make_dist.compare(first, second)
    with pytest.raises(SystemExit, match=r"onlooker\.whl: two builds of one commit differ"):
        make_dist.compare(first, third)
    with pytest.raises(SystemExit, match="one build made"):
        make_dist.compare(first, [])
