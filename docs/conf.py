"""How Sphinx makes the site: `make docs`."""

import sys
from pathlib import Path

import onlooker

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "onlooker"
author = "the onlooker contributors"
version = release = onlooker.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "command_help",
    "public_names",
    "repository_links",
    "short_types",
]
exclude_patterns = ["_build", "_ext", "_theme"]

# Anchors of headings, as the repository's web view makes them.
myst_heading_anchors = 3

# The names of our own must all lead somewhere. Those of other libraries are described where those are.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!onlooker\.).*|onlooker\.parts\.Result")]
default_role = "name"

add_module_names = False
toc_object_entries = False
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_attr_annotations = False
# A line of this section may name two attributes.
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "onlooker"
html_theme_path = ["_theme"]
html_title = "onlooker"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_css_files = ["site.css"]
