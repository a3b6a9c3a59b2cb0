"""Tables in a real browser: what is taken along, linked to, copied, summed, and which columns fit."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.page_parts import ROWS, grid

import inferometer
from inferometer.reports.page.blocks import Grid, Words
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks
from inferometer.reports.views.layout import Field, Section

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

TRACES = ("h100_qwen1.5-0.5b", "mi300_vllm_gpt-oss_decode", "mi300_resnet_ddp")
NAMES = (
    "[...document.querySelectorAll('tbody tr.row')].filter(row => row.offsetParent)"
    ".map(row => row.cells[0].textContent.slice(0, 6))"
)
# What a click on CSV hands to the browser to save.
CAUGHT = """
window.saved = null;
URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'data:,'; };
document.addEventListener('click', (event) => { if (event.target.download) event.preventDefault(); }, true);
document.querySelector('.csv').click(), 0
"""


def saved(tab: Tab) -> list[list[str]]:
    tab.run(CAUGHT)
    tab.wait("window.saved !== null")
    return [*csv.reader(tab.run("window.saved").splitlines())]


def link(tab: Tab, fragment: str) -> None:
    tab.run(f"location.hash = {json.dumps(fragment)}")
    tab.wait(f"location.hash.startsWith({json.dumps(fragment[:8])})")


def test_csv_has_the_rows_shown_with_exact_numbers_and_whole_names(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    assert saved(tab)[0] == ["Kernel", "Total (ns)", "Instances", "Share (%)", "Mean (ns)", "Family"]
    assert saved(tab)[2] == ["copy_b", "3500000", "1500", "20", "2333.3", "copy"]
    tab.run("(i => { i.value = 'norm'; i.oninput(); })(document.querySelector('.tools input'))")
    tab.run("document.querySelectorAll('thead button')[1].click()")
    assert saved(tab)[1:] == [["norm_d", "1000", "10", "5", "100", "norm"], ["norm_e", "999", "10", "4", "", "norm"]]


def test_csv_runs_nothing_in_a_spreadsheet(tab: Tab, show: Callable[..., None]) -> None:
    names = ['=HYPERLINK("http://evil")', " +1", "@SUM(A1)", 'a "quoted", name']
    show(grid([(10 - n, 1, 0.1, 1.0, "x", name) for n, name in enumerate(names)]))
    assert [row[0] for row in saved(tab)[1:]] == [f"'{name}" for name in names[:3]] + names[3:]


def test_a_link_filters_and_sorts_and_the_address_says_what_is_shown(tab: Tab, show: Callable[..., None]) -> None:
    show(*(Words("far") for _ in range(100)), grid(), grid(ROWS[:3] * 3))
    link(tab, "#kernels?filter=norm&sort=Total")
    tab.wait(f'JSON.stringify({NAMES}.slice(0, 2)) === \'["norm_e","norm_d"]\'')
    assert tab.run("document.querySelector('.tools input').value") == "norm"
    tab.run("document.querySelectorAll('thead button')[2].click()")
    assert tab.run("location.hash") == "#kernels?filter=norm&sort=-Instances"
    tab.run("(i => { i.value = ''; i.oninput(); })(document.querySelector('.tools input'))")
    assert tab.run("location.hash") == "#kernels?sort=-Instances"
    link(tab, f"#kernels?table=2&filter={quote('GEMM_a')}")
    tab.wait("document.querySelectorAll('.tools input')[1].value === 'GEMM_a'")
    assert tab.run("document.querySelectorAll('.grid')[1].querySelector('output').textContent") == "3 of 9 rows"


@pytest.mark.parametrize("fragment", ["#nothing?filter=x", "#kernels?sort=<img src=x>&table=99", "#kernels?filter=%zz"])
def test_a_link_to_what_is_not_there_does_no_harm(tab: Tab, show: Callable[..., None], fragment: str) -> None:
    show(grid())
    tab.run(f"location.hash = {json.dumps(fragment)}")
    assert tab.run("document.querySelectorAll('tbody tr.row').length") == len(ROWS)
    assert tab.run("document.querySelectorAll('img').length") == 0


def test_a_name_is_copied_whole(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    tab.run("document.querySelector('.long summary').click()")
    tab.wait("document.querySelector('.copy') !== null")
    tab.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }, 0")
    tab.run("document.querySelector('.copy').click()")
    tab.wait("document.querySelector('.copy').textContent === 'Copied'")
    assert tab.run("window.copied") == ROWS[2][-1]


def test_the_heading_stays_in_view_and_the_sums_do(tab: Tab, show: Callable[..., None]) -> None:
    show(grid([(n + 1, 1, 0.001, 1.0, "x", f"kernel_{n}") for n in range(200)]))
    tab.run("document.querySelector('.scroll').scrollTop = 2000")
    inside = (
        "(() => { const box = document.querySelector('.scroll').getBoundingClientRect();"
        " const at = (selector) => document.querySelector(selector).getBoundingClientRect();"
        " return [at('thead th').top - box.top, box.bottom - at('tfoot th').bottom]; })()"
    )
    assert all(0 <= edge <= 2 for edge in tab.run(inside))
    assert tab.run("document.querySelector('tfoot').textContent").startswith("Sum of all rows20.100 μs")


def test_columns_that_do_not_fit_are_the_most_spare_ones_and_can_be_asked_for(
    tab: Tab, show: Callable[..., None]
) -> None:
    fields = [Field("name", "Name", "name"), *(Field(f"c{n}", f"Column {n}", "ns", n % 3) for n in range(24))]
    frame = pl.DataFrame({"name": ["a", "b", "c", "d"], **{f"c{n}": [10**9 + n] * 4 for n in range(24)}})
    show(Grid(Section("Wide", fields, frame)))
    seen = "[...document.querySelectorAll('thead th')].filter(head => head.offsetParent).map(head => head.textContent)"
    excess = "(box => box.scrollWidth - box.clientWidth)(document.querySelector('.scroll'))"
    left = [field for field in fields if field.title not in tab.run(seen)]
    assert tab.run(excess) <= 0
    assert {field.spare for field in left} >= {2}
    assert min(field.spare for field in left) >= max(field.spare for field in fields if field not in left) - 1
    button = "document.querySelector('.columns')"
    assert tab.run(f"{button}.textContent") == f"{len(left)} more columns"
    assert len(saved(tab)[0]) == len(fields)
    tab.run(f"{button}.click()")
    assert len(tab.run(seen)) == len(fields)
    assert tab.run(excess) > 0


def test_a_second_column_of_names_is_left_out_rather_than_broken_letter_by_letter(
    tab: Tab, show: Callable[..., None]
) -> None:
    columns = [f"c{n}" for n in range(11)]
    fields = [Field("name", "Name", "name"), *(Field(c, f"Column {c}", "ns") for c in columns)]
    fields.append(Field("after", "After", "kernel", 5))
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
    show(
        Grid(
            Section(
                "Wide",
                fields,
                pl.DataFrame({"name": ["a"] * 4, **dict.fromkeys(columns, [10**9] * 4), "after": [kernel] * 4}),
            )
        )
    )
    cells = "[...document.querySelectorAll('td:has(> .long)')].filter(cell => cell.offsetParent)"
    widths = tab.run(f"{cells}.map(cell => cell.offsetWidth)")
    assert all(width >= 100 for width in widths)
    tab.run("document.querySelector('.columns').click()")
    assert tab.run("document.querySelector('td:has(> .long)').offsetWidth") >= 100


def test_columns_that_only_rows_have_are_gone_while_all_groups_are_folded(tab: Tab, show: Callable[..., None]) -> None:
    show(grid(group="family"))
    seen = "[...document.querySelectorAll('thead th')].filter(head => head.offsetParent).map(head => head.textContent)"
    assert tab.run(seen) == ["Kernel", "Total", "Instances", "Share", "Mean"]
    tab.run("document.querySelector('.fold').click()")
    assert tab.run(seen) == ["Kernel", "Total", "Instances", "Share"]
    tab.run("document.querySelector('tr.group .toggle').click()")
    assert tab.run(seen) == ["Kernel", "Total", "Instances", "Share", "Mean"]


@pytest.mark.parametrize("name", TRACES)
def test_no_column_of_a_real_trace_is_clipped_or_empty_at_1400_pixels(
    tab: Tab, name: str, shared_data: Path, tmp_path: Path
) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz")
    path = tmp_path / "page.html"
    made = render_page(build_blocks(PageData(trace)), title=name)
    path.write_text(made.html, "utf-8")
    assert made.left_out == ()
    assert len(made.html.encode()) < 1_200_000
    tab.open(path)
    clipped = (
        "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)"
        ".map(box => box.getAttribute('aria-label'))"
    )
    assert tab.run(clipped) == []
    empty: Any = tab.run(
        "[...document.querySelectorAll('.grid table')].flatMap(table => [...table.tHead.rows[0].cells]"
        ".filter((head, column) => [...table.querySelectorAll('tr.row')]"
        ".every(row => ['', '-'].includes(row.cells[column].textContent))).map(head => head.textContent))"
    )
    assert empty == []
