"""The site, opened as a file in a real browser: a word that is typed is found, and nothing is asked from outside."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.reports.page.browser import chromium, find_chromium

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"

pytestmark = [
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra `docs`"),
    pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "docs/build_site.py", str(folder)], cwd=ROOT, check=True)
    return folder / "site"


@pytest.mark.parametrize("page", ["index.html", "docs/guide/tutorial.html"])
def test_a_word_that_is_typed_into_a_page_of_a_folder_is_found(page: str, site: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as tab:
        tab.open(site / page)
        tab.run("document.querySelector('[data-md-component=search-query]').focus()")
        tab.call("Input.insertText", text="n-grams")
        tab.press("End", 35)  # the theme searches when a key goes up
        tab.wait(f"{RESULTS}.length > 0")
        tutorial = (site / "docs/guide/tutorial.html").as_uri()
        assert any(link.startswith(tutorial) for link in tab.run(RESULTS))
        assert [address for address in tab.requests if not address.startswith(("file:", "about:", "data:"))] == []
        assert tab.problems == []
