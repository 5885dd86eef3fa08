"""Names of ours, however a docstring or a signature spells them, lead to where the reference describes them."""

import re

from docutils import nodes
from docutils.utils import unescape
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

import onlooker


class Code(SphinxRole):
    """What stands between backticks in a docstring: any piece of code, a link where it is a name that we describe."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The code, to be linked when all names are known."""
        text = unescape(self.text)
        code = nodes.literal(self.rawtext, text)
        if not re.fullmatch(r"[\w.]*\w(\(\))?", text):
            return [code], []
        context = {key: self.env.ref_context.get(key) for key in ("py:module", "py:class")}
        target = text.removesuffix("()")
        reference = addnodes.pending_xref(
            self.rawtext, code, refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname, **context
        )
        return [reference], []


def to_public_name(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Link a class by its public name where a signature names the module that it lives in."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    if name in onlooker.__all__:
        public = f"onlooker.{name}"
        return env.domains.python_domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, content)
    return content if node["reftype"] == "obj" else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_role("name", Code())
    app.connect("missing-reference", to_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
