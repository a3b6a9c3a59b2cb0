"""What a screen shows: cells as what their names tell, and the colors of a theme."""

import polars as pl
import pytest

from inferometer.reports.screen.screen import Detail, Page
from inferometer.reports.screen.table import print_table
from inferometer.reports.themes import Theme
from inferometer.reports.views.layout import Field, Section

KERNEL = "_ZN2at6native13reduce_kernelILi512ELi1EEEvi"
"""As an op's name it would be one that nobody gives; as a kernel's it tells something."""


def printed(detail: Detail) -> list[str]:
    """The names of a table with an op, the same text as a kernel's, and neither."""
    frame = pl.DataFrame({"what": [KERNEL, KERNEL, None, "aten::mm"], "is_kernel": [True, False, True, None]})
    page = Page(detail, is_terminal=False)
    print_table(Section("Work", [Field("what", "Op or kernel", "kernel", kernel_where="is_kernel")], frame), page)
    return page.text().splitlines()[3:]


@pytest.mark.parametrize(
    ("detail", "kernel"),
    [
        (Detail(), "reduce"),
        (Detail(full=True), "void at::native::reduce_kernel<512, 1>(int)"),
        (Detail(raw=True), KERNEL),
    ],
)
def test_where_a_column_has_kernels_and_ops_the_kernels_alone_are_decoded(detail: Detail, kernel: str) -> None:
    assert printed(detail) == [kernel, KERNEL, "-", "aten::mm"]


@pytest.mark.parametrize(
    ("theme", "codes"),
    [("auto", "\x1b[33m"), ("light", "\x1b[38;5;166m"), ("dark", "\x1b[93m"), ("none", "")],
)
def test_a_terminal_has_the_colors_of_its_theme(theme: Theme, codes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    page = Page(Detail(theme=theme), is_terminal=True)
    page.losses(["warning: 1 truncated"])
    end = "\x1b[0m" if codes else ""
    assert page.text() == f"{codes}warning: 1 truncated{end}\n"


def test_no_color_goes_before_any_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    page = Page(Detail(theme="dark"), is_terminal=True)
    page.losses(["warning: 1 truncated"])
    assert page.text() == "warning: 1 truncated\n"
