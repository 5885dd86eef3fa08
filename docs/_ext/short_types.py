"""Signatures name arrays as the source does, not by what those names stand for."""

from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from onlooker.base.types import Features, Index, Progress, Vector

SPELT_OUT = {
    stringify_annotation(kind, "smart"): name
    for name, kind in {
        "ArrayLike": ArrayLike,
        "Features": Features,
        "Index": Index,
        "Vector": Vector,
        "Progress": Progress,
    }.items()
}


def shorten(*event: Any) -> tuple[str | None, str | None]:
    """Arguments and result, with short names."""
    arguments, result = event[-2:]
    for long, short in SPELT_OUT.items():
        arguments = arguments and arguments.replace(long, short)
        result = result and result.replace(long, short)
    return arguments, result


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
