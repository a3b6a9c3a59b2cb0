"""A page of some parts, open in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.reports.page.browser import Tab

from inferometer.reports.page.blocks import Block, Part
from inferometer.reports.page.document import render_page


@pytest.fixture
def show(tab: Tab, tmp_path: Path) -> Callable[..., None]:
    """Opens a page of these parts."""

    def show(*parts: Part, **window: Any) -> None:
        path = tmp_path / "page.html"
        path.write_text(render_page([Block("kernels", "Kernels", parts)], title="run").html, "utf-8")
        tab.open(path, **window)

    return show
