"""Links from a page to the repository around it: to a file they give the file, to a folder there is no page to open."""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class RepositoryLinks(SphinxTransform):
    """Pages link as the repository's web view does; what the site has no page for becomes a file, or plain text."""

    default_priority = 10
    """Before Sphinx collects the files to be copied."""

    def apply(self) -> None:
        """Replace the links that leave the folder of the pages, or lead to a folder."""
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link.get("reftype") != "myst":
                continue
            target = link["reftarget"] + (".md" if link.get("refdomain") == "doc" else "")
            if link.get("refdomain") == "doc" and not target.startswith(".."):
                continue
            path = self.env.relfn2path(target, link["refdoc"])[1]
            if Path(path).is_dir():
                link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
