"""The documentation as a site: every page is in the navigation, links hold, and nothing is loaded from outside."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra `docs`")
def test_the_site_builds_strictly_and_loads_nothing_from_outside() -> None:
    done = subprocess.run([sys.executable, "docs/build_site.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    start = (ROOT / "build" / "site" / "index.html").read_text("utf-8")
    assert re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)', start) == []
    assert "no-run" not in start


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    patterns = ("*.md", "docs/**/*.md", "samples/*.md", "benchmarks/results/*.md")
    pages = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}
    assert named == pages
