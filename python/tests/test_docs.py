"""What stands in the documentation runs: the Python blocks of a page, in turn, in an empty folder."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")])
# A block below such a comment needs something that is not here; the comment says what.
NOT_RUN = "<!-- not run"
BLOCK = re.compile(r"(<!-- not run[^\n]*-->\n+)?```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)]*))?\)")


def blocks(page: Path) -> list[str]:
    return [code for skip, code in BLOCK.findall(page.read_text(encoding="utf-8")) if not skip]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, code in enumerate(blocks(page), 1):
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.stem)
def test_links_of_a_page_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
