"""Values in, one self-contained HTML file out."""

from onlooker.report.page import Page, Section, render
from onlooker.report.table import Column, Table

__all__ = ["Column", "Page", "Section", "Table", "render"]
