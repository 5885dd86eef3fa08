"""The words of the README and the pages: the trade's own, and those that need it are in the glossary."""

import re
from pathlib import Path

import pytest

from onlooker.report.page import terms_section

ROOT = Path(__file__).parent.parent.parent
GENERATED = {"licences.md"}
PAGES = [ROOT / "README.md", *(path for path in sorted(ROOT.glob("docs/*.md")) if path.name not in GENERATED)]
PLAIN = {
    r"foret(?:ell|old)\w*": "predict",
    r"untold|told": "identified, reported",
    r"read past": "ignored",
    r"anew": "again",
    r"made up of": "consists of",
    r"ways? to explore": "exploration",
    r"guessing makes": "random guessing gets",
    r"leaves out (?:0|zero)": "clearly non-zero",
}
"""What not to write, and what a reader would look for instead."""
REWRITTEN_ELSEWHERE = {"architecture.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in REWRITTEN_ELSEWHERE], ids=lambda p: p.name)
def test_pages_use_plain_words(page):
    """Blocks of code and output are left to the programs that they show."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    found = [
        f"{word} ({plain})" for word, plain in PLAIN.items() if re.search(rf"\b(?:{word})\b", prose, re.IGNORECASE)
    ]
    assert found == []


def test_the_readme_links_to_terms_that_the_glossary_has():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = {term.lower().replace(" ", "-") for term in re.findall(r"^### (.+)$", glossary, re.MULTILINE)}
    linked = set(re.findall(r"docs/glossary\.md#([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert linked
    assert linked <= terms


def test_the_report_explains_its_terms_as_the_glossary_does():
    glossary = " ".join((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split())
    terms = terms_section().table.rows
    assert {term for term, _ in terms} >= {"agreement", "burn-in", "evidence", "log-odds", "predictability"}
    for term, meaning in terms:
        assert f"### {term.capitalize()} {meaning}" in glossary
