"""Links from a page to the repository around it: a file is there to be taken, a folder has no page to open."""

import os
from pathlib import Path

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class RepositoryLinks(SphinxTransform):
    """Make what pages link, as the repository's web view follows it, into something that the site has."""

    default_priority = 10
    """Early: the files to be copied are collected after this."""

    def apply(self) -> None:
        """Replace links to pages outside of the site by the files, and links to folders by their words."""
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link.get("reftype") != "myst":
                continue
            if link.get("refdomain") != "doc":
                if Path(self.env.relfn2path(link["reftarget"], self.env.docname)[1]).is_dir():
                    link.replace_self(link.children)
            elif link["reftarget"] not in self.env.found_docs:
                path = "/" + os.path.relpath(f"{link['reftarget']}.md", self.env.srcdir)
                link.replace_self(addnodes.download_reference("", "", *link.children, reftarget=path))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
