"""Build wheel and sdist of the last commit twice, compare them byte for byte, and try both: `make dist`.

Each build has a fresh export of the commit, in a folder of another name and depth, with another time zone and umask;
`SOURCE_DATE_EPOCH` is the commit's time. Each result is installed into an environment of its own, with the locked
requirements, and asked for its version and a small fit. What passed is left in `dist/`.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TRIAL = """
import numpy as np, onlooker, sys
assert onlooker.__file__.startswith(sys.prefix), onlooker.__file__
log = onlooker.simulate(onlooker.Environment(3, 5), onlooker.LinUCB(), n_rounds=500).log
print("theta", onlooker.SuffixImitation().fit(log).theta_.round(2).tolist())
"""


def say(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command with these variables set, and give what it prints; its failure is ours."""
    # Nothing of the caller's Python may stand in for what was installed.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=kept | variables, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with code {done.returncode}")
    return done.stdout.strip()


def export(folder: Path) -> Path:
    """The files of the last commit, and nothing else."""
    folder.mkdir(parents=True)
    say("git", "archive", "--format=tar", "-o", folder / "commit.tar", "HEAD")
    say("tar", "-xf", folder / "commit.tar", "-C", folder)
    (folder / "commit.tar").unlink()
    return folder


def build(source: Path, out: Path, *, zone: str, umask: int) -> list[Path]:
    """Wheel and sdist."""
    epoch = say("git", "log", "-1", "--format=%ct")
    before = os.umask(umask)
    try:
        say(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=export(source), TZ=zone, SOURCE_DATE_EPOCH=epoch)
    finally:
        os.umask(before)
    return sorted(out.iterdir())


def compare(first: list[Path], second: list[Path]) -> None:
    """Exit unless both builds gave the same files."""
    if [path.name for path in first] != [path.name for path in second]:
        sys.exit(f"one build made {[path.name for path in first]}, the other {[path.name for path in second]}")
    for one, other in zip(first, second, strict=True):
        if not filecmp.cmp(one, other, shallow=False):
            sys.exit(f"{one.name}: two builds of one commit differ")


def try_out(built: Path, place: Path) -> str:
    """Install it where nothing else is, run it there, and give what it said."""
    say("sh", ROOT / "scripts/make_venv.sh", place / "venv", PYTHON=sys.executable)
    python = place / "venv/bin/python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    say(*pip, "--require-hashes", "-r", ROOT / "requirements/run.txt")
    say(*pip, "--no-deps", "--no-build-isolation", built)
    version = say(place / "venv/bin/onlooker", "--version", cwd=place)
    return f"{version}; {say(python, '-W', 'ignore', '-c', TRIAL, cwd=place)}"


def main() -> None:
    """Build twice, compare, try."""
    with TemporaryDirectory() as name:
        place = Path(name)
        first = build(place / "a", place / "first", zone="UTC", umask=0o022)
        second = build(place / "b/deeper/onlooker", place / "second", zone="Asia/Tokyo", umask=0o077)
        compare(first, second)
        print(f"two builds gave the same bytes: {', '.join(path.name for path in first)}", flush=True)
        for built in first:
            trial = place / f"trial-{built.suffix[1:]}"
            trial.mkdir()
            print(f"{built.name}: {try_out(built, trial)}", flush=True)
        (ROOT / "dist").mkdir(exist_ok=True)
        for built in first:
            shutil.copy(built, ROOT / "dist" / built.name)
    print("both are in dist/")


if __name__ == "__main__":
    main()
