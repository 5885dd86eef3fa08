"""Colours, dashes and markers of charts."""

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#595959")
"""Okabe and Ito's, in the order of contrast with white, and a grey."""

DARK = ("#56b4e9", "#f5853f", "#2bbf94", "#e3a0c4", "#c5b8ff", "#f0c04a", "#b8b8b8")
"""For the same series on a dark page: lighter, in the same order."""

INK = "#000000"
"""Axes, text, levels and marks; the page's own text colour where there is a page."""

DASHES = ("-", (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 1, 2, 1)))
"""Series differ in these as well, for print without colour."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Shapes of the points."""
