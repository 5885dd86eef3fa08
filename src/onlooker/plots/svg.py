"""From matplotlib's SVG to one that can stand inside any page: no styles, no ids of its own, no colour of the page."""

import re
from xml.etree import ElementTree as ET

from onlooker.plots.palette import INK

_XLINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def tidy(svg: str, *, label: str, prefix: str) -> str:
    """Make matplotlib's drawing fit to be put into a page.

    Inline styles become attributes, which a strict content security policy lets through. Ink becomes the colour of the
    text around it. Ids start with `prefix`, so that drawings on one page do not get in each other's way.
    """
    root = ET.fromstring(svg)  # noqa: S314 - matplotlib wrote it a moment ago
    for parent in root.iter():
        for child in list(parent):
            if _name(child.tag) in {"metadata", "style"}:
                parent.remove(child)
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        element.tag = _name(element.tag)
        attributes = {key: value for key, value in element.attrib.items() if key not in {"style", _XLINK, "id"}}
        if element.get("id") in used:
            attributes["id"] = prefix + element.attrib["id"]
        if _XLINK in element.attrib:
            attributes["href"] = f"#{prefix}{element.attrib[_XLINK][1:]}"
        attributes |= _declarations(element.get("style", ""))
        element.attrib.clear()
        for key, value in attributes.items():
            element.set(key, "currentColor" if value == INK else _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width,
        "height": height,
        "role": "img",
        "aria-label": label,
        # Matplotlib leaves these out where they have its defaults, which are not those of SVG.
        "fill": "currentColor",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
        "font-family": "system-ui, sans-serif",
    }
    return ET.tostring(root, encoding="unicode")


def _name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _references(element: ET.Element) -> list[str]:
    names = [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]
    return [*names, element.attrib[_XLINK][1:]] if _XLINK in element.attrib else names


def _declarations(style: str) -> dict[str, str]:
    """Read an inline style, without the font's family: that is the page's to choose.

    Examples
    --------
    >>> _declarations("font: 700 11px 'DejaVu Sans', sans-serif; text-anchor: middle")
    {'text-anchor': 'middle', 'font-size': '11px', 'font-weight': '700'}
    """
    pairs = (part.partition(":") for part in style.split(";") if ":" in part)
    found = {key.strip(): value.strip() for key, _, value in pairs}
    found.pop("font-family", None)
    # Older matplotlib writes the shorthand, which exists in styles only.
    shorthand = found.pop("font", None)
    if shorthand:
        for key, pattern in (("font-size", r"[\d.]+px"), ("font-weight", r"\b[1-9]00\b|\bbold\b")):
            match = re.search(pattern, shorthand)
            if match:
                found[key] = match[0]
    return found
