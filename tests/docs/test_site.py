"""The documentation as a site: every page is in the navigation, links hold, and nothing is loaded from outside."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra `docs`")
def test_the_site_builds_strictly_loads_nothing_from_outside_and_is_searched_without_a_server(tmp_path: Path) -> None:
    command = [sys.executable, "docs/build_site.py", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "site"
    start = (site / "index.html").read_text("utf-8")
    assert re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)', start) == []
    assert "no-run" not in start
    index = (site / "search" / "search_index.js").read_text("utf-8")
    found = json.loads(index.removeprefix("var __index = "))
    assert "docs/guide/tutorial.html" in {page["location"] for page in found["docs"]}
    for page in (site / "index.html", site / "docs" / "guide" / "tutorial.html"):
        (shim,) = re.findall(r'<script src="([^"]*iframe-worker[^"]*)"', page.read_text("utf-8"))
        assert (page.parent / shim).is_file()


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    patterns = ("*.md", "docs/**/*.md", "samples/*.md", "benchmarks/results/*.md")
    pages = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}
    assert named == pages
