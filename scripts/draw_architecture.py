"""Draw the rooms of the source, their layers and who imports whom: `python scripts/draw_architecture.py`.

Layers come from the import contract in pyproject.toml, sizes and imports from the source itself.
"""

import ast
import sys
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "onlooker"
PICTURE = ROOT / "docs" / "architecture.svg"

WIDTH, ROW, HIGH, MARGIN = 960, 78, 44, 16
LINE, INK, SOFT, FILL = "#8fa3b8", "#1b2733", "#5b6b7b", "#eef3f8"


def layers() -> list[list[str]]:
    """Rooms by layer, the command line first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def imports(room: str) -> set[str]:
    """Rooms that a room imports from."""
    found: set[str] = set()
    for path in (SOURCE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onlooker."):
                found.add(str(node.module).split(".")[1])
    return found - {room}


def size(room: str) -> tuple[int, int]:
    """Files of a room, and lines in them."""
    files = list((SOURCE / room).rglob("*.py"))
    return len(files), sum(path.read_text(encoding="utf-8").count("\n") for path in files)


def picture() -> str:
    """The picture as SVG: a box for each room, lower layers further down, a line for each import."""
    rows = layers()
    places: dict[str, tuple[float, float, float]] = {}
    for depth, rooms in enumerate(rows):
        wide = (WIDTH - 2 * MARGIN - 24 * (len(rooms) - 1)) / len(rooms)
        wide = min(wide, 280)
        left = (WIDTH - len(rooms) * wide - 24 * (len(rooms) - 1)) / 2
        for place, room in enumerate(rooms):
            places[room] = (left + place * (wide + 24), MARGIN + depth * ROW, wide)
    parts = [_line(places[room], places[other]) for room in places for other in sorted(imports(room) & {*places})]
    parts += [_box(room, *places[room]) for room in places]
    height = 2 * MARGIN + len(rows) * ROW - (ROW - HIGH)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    title = "<title>Rooms of the source in layers: each imports only from rooms further down.</title>"
    back = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, title, back, *parts, "</svg>", ""])


def _line(upper: tuple[float, float, float], lower: tuple[float, float, float]) -> str:
    """From the middle of the upper box's lower edge to that of the lower box's upper edge."""
    x1, y1, x2, y2 = upper[0] + upper[2] / 2, upper[1] + HIGH, lower[0] + lower[2] / 2, lower[1]
    bend = (y2 - y1) / 2
    path = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-opacity="0.45" stroke-width="1.2"/>'


def _box(room: str, x: float, y: float, wide: float) -> str:
    files, lines = size(room)
    middle = x + wide / 2
    box = f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{HIGH}" rx="6" fill="{FILL}" stroke="{LINE}"/>'
    # Rounded, so that the picture changes with the plan and not with every line.
    about = f"{files} files, {round(lines, -2):,} lines"
    return box + _text(room, middle, y + 19, 16, INK) + _text(about, middle, y + 36, 12, SOFT)


def _text(text: str, x: float, y: float, points: int, colour: str) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="middle"'
    return f'<text {place} font-size="{points}" fill="{colour}">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {len(layers())} layers\n")
