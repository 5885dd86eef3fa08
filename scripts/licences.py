"""Write the licences of everything in `requirements/run.txt` to `docs/licences.md`: `make licences`.

They are taken from the metadata of the installed packages: the licence expression where there is one, else the
classifier, else the first line of the licence field.
"""

import re
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK, PAGE = ROOT / "requirements/run.txt", ROOT / "docs/licences.md"

_PIN = re.compile(r"(?m)^([A-Za-z0-9._-]+)==(\S+)")
_INTRODUCTION = """\
# Licences

What `requirements/run.txt` installs beside onlooker, which is MIT: to run it and, with hatchling, to build it. Written
by `make licences` from the metadata of the installed packages; where two versions are locked, the Python decides.

| package | version | licence |
|---|---|---|
"""


def locked(lock: Path = LOCK) -> dict[str, list[str]]:
    """Versions by name."""
    pins: dict[str, list[str]] = {}
    for name, version in _PIN.findall(lock.read_text(encoding="utf-8")):
        pins.setdefault(name, []).append(version)
    return pins


def licence(name: str) -> str:
    """What the installed package says its licence is."""
    said = metadata(name)
    if expression := said["License-Expression"]:
        return str(expression)
    classified = [one.rpartition(" :: ")[2] for one in said.get_all("Classifier") or [] if one.startswith("License ::")]
    text = (said["License"] or "").strip()
    found = ", ".join(classified) or (text.splitlines()[0] if text else "")
    if not found:
        raise SystemExit(f"{name} says nothing of its licence: look it up, and teach this script where it stands")
    return found


def page() -> str:
    """The whole page."""
    rows = [f"| {name} | {', '.join(versions)} | {licence(name)} |\n" for name, versions in locked().items()]
    return _INTRODUCTION + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
