"""What is locked, by which licence, and that a build which differs is noticed."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

import licences  # noqa: E402  found through the line above
import make_dist  # noqa: E402

LOCKS = sorted(ROOT.glob("requirements/*.txt"))


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
    run, dev = (licences.locked(ROOT / "requirements" / name) for name in ("run.txt", "dev.txt"))
    assert all(dev[name] == versions for name, versions in run.items())
    assert not {"pip-audit", "statsmodels", "pytest"} & run.keys()


def test_the_list_of_licences_is_that_of_the_lock():
    """Names and versions to the letter; what a licence is called may depend on the version that this Python takes."""
    rows = re.findall(r"(?m)^\| ([a-z0-9._-]+) \| ([^|]+) \| ([^|]+) \|$", licences.PAGE.read_text(encoding="utf-8"))
    listed = {name: versions.split(", ") for name, versions, _ in rows if name != "package"}
    assert listed == licences.locked()
    assert all(licences.licence(name) for name in listed)


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
