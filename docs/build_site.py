"""Builds the documentation as a site of plain files: `build/site/index.html`. Needs mkdocs-material; `make docs`.

    python docs/build_site.py              into build/site
    python docs/build_site.py FOLDER       into FOLDER/site

The repository's Markdown pages are copied to `pages`, next to `site`, with their places kept, so that links between
them hold. A link to a file that the site lacks (a source file, a folder) becomes its words. A broken link or a page
that the navigation of mkdocs.yml lacks stops the build.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SOURCES = ("*.md", "docs/**/*.md", "samples/*.md", "benchmarks/results/*.md")
_OTHERS = ("docs/*.svg", "docs/**/*.png", "docs/site.css", "docs/iframe-worker.js", "docs/notebooks/*.ipynb")
_LINK = re.compile(r"(?<!!)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_MARKS = re.compile(r"^(?P<fence>`{3,}\w+) [\w -]+$", re.MULTILINE)  # what tests of blocks read behind the language


def stage(staged: Path) -> list[Path]:
    """Copy the pages and what they show; the pages, as paths from the root."""
    shutil.rmtree(staged, ignore_errors=True)
    pages, others = _find(_SOURCES), _find(_OTHERS)
    kept = frozenset([*pages, *others])
    for path in pages:
        text = _MARKS.sub(r"\g<fence>", (ROOT / path).read_text("utf-8"))
        _write(staged / path, _LINK.sub(partial(_link, page=path, kept=kept), text))
    for path in others:
        target = staged / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    return pages


def _find(patterns: Sequence[str]) -> list[Path]:
    return sorted({path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern)})


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _link(link: re.Match[str], page: Path, kept: frozenset[Path]) -> str:
    """The link, or its words where it leads to a file of the repository that the site lacks."""
    target = link["target"].partition("#")[0]
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    file = (ROOT / page.parent / target).resolve()
    inside = file.is_relative_to(ROOT) and file.exists()
    return link["words"] if inside and file.relative_to(ROOT) not in kept else link[0]


def main(arguments: Sequence[str]) -> int:
    """The exit code of the build."""
    folder = Path(arguments[0]).resolve() if arguments else ROOT / "build"
    pages = stage(folder / "pages")
    config = folder / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: pages\nsite_dir: site\n", encoding="utf-8")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(config)]
    code = subprocess.call(build, cwd=ROOT, env=environment)
    if code == 0:
        print(f"{len(pages)} pages: {folder / 'site' / 'index.html'}")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
