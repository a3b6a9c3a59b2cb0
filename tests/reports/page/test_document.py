"""The page as HTML: one file that loads nothing, all that comes from files is text, and it is never too large."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.reports.conftest import HOSTILE
from tests.traces import trace_of

from inferometer.reports.page.blocks import MOST_ROWS, Block, Chart, Facts, Grid, Part, Point, Points, Words
from inferometer.reports.page.document import MOST_BYTES, render_page
from inferometer.reports.page.figures import figure_json
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks
from inferometer.reports.views.layout import Field, Section

FIELDS = (
    Field("kernel", "Kernel", "kernel"),
    Field("total_ns", "Total", "ns"),
    Field("mean_ns", "Mean", "ns"),
    Field("share", "Share", "share"),
    Field("family", "Family", "text"),
)
_VOID = frozenset({"meta", "link", "br", "input", "img"})


class Html(HTMLParser):
    """Tags with their attributes, and texts outside of style and script; fails where tags don't close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(" ".join(data.split()))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag == name]


def page(*parts: Part, name: str = "kernels") -> str:
    return render_page([Block(name, "Kernels", parts)], title="run.json").html


def grid(rows: list[tuple[Any, ...]], **options: Any) -> Grid:
    frame = pl.DataFrame(rows, schema=[field.column for field in FIELDS], orient="row")
    return Grid(Section("Kernels", FIELDS, frame, ("A note.",)), **options)


def chart(**trace: Any) -> Chart:
    return Chart("Time", "a takes all of it.", [{"type": "bar", **trace}], {"xaxis": {"title": {"text": "Time, ms"}}})


def test_the_page_loads_nothing_and_forbids_it() -> None:
    found = Html(page(Words("x"), chart(x=[1], y=["a"])))
    (policy,) = [meta["content"] for meta in found.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert not any("src" in attrs for _, attrs in found.tags)
    assert {link["href"] for link in found.all("link")} == {"data:,"}


def test_headings_and_landmarks_are_in_order() -> None:
    blocks = [Block("facts", "Facts", [Facts([("File", "a")])]), Block("kernels", "Kernels", [grid([]), chart(x=[1])])]
    found = Html(render_page(blocks, title="run.json").html)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert {"header", "main", "nav", "footer"} <= {tag for tag, _ in found.tags}
    skip = next(attrs for attrs in found.all("a") if attrs.get("class") == "skip")
    assert skip["href"] == "#content"
    identifiers = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    assert {attrs["href"] for attrs in found.all("a")} <= {f"#{identifier}" for identifier in identifiers}


def test_names_stand_first_and_cells_have_their_exact_number() -> None:
    found = Html(page(grid([("gemm", 84_724, 2_500.5, 0.25, "gemm")])))
    assert found.texts[-9:-2] == ["Share", "Family", "gemm", "84.724 μs", "2.500 μs", "25.0 %", "gemm"]
    assert [attrs["data-value"] for tag, attrs in found.tags if "data-value" in attrs] == ["84724", "2500.5", "0.25"]


def test_names_of_kernels_are_short_and_whole_behind_that() -> None:
    names = [
        "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, char*>(int)",
    ]
    found = Html(page(grid([(name, 1, 1.0, 1.0, "other") for name in names])))
    at = found.texts.index("Family") + 1
    assert [found.texts[at : at + 2], found.texts[at + 6 : at + 8]] == [
        ["nvjet gemm bf16 128x112x64 s7 cl1x2 splitK TNT", names[0]],
        ["add bf16 v4", names[1]],
    ]


def test_other_long_names_lose_their_middle_and_none_looks_like_another() -> None:
    names = [f"{'x' * 60}{end}{'y' * 60}" for end in "ab"]
    fields = (Field("op", "Op", "name"),)
    found = Html(page(Grid(Section("Ops", fields, pl.DataFrame({"op": names})))))
    shown = [text for text in found.texts if text.startswith("xxx")]
    assert [shown[1], shown[3]] == names
    assert len({shown[0], shown[2]}) == 2
    assert all(len(text) <= 60 and "…" in text for text in (shown[0], shown[2]))


def test_columns_in_which_no_row_has_anything_are_named_not_shown() -> None:
    found = Html(page(grid([("a", None, 3.0, None, ""), ("b", None, 5.0, None, "")])))
    assert "Left out, since no row has it: Total, Share, Family." in found.texts
    assert [text for text in found.texts if text in ("Total", "Share", "Family", "Mean")] == ["Mean"]


def test_groups_have_sums_where_adding_up_is_right() -> None:
    rows = [("a", 30, 3.0, 0.3, "gemm"), ("b", 50, 5.0, 0.5, "copy"), ("c", 20, 2.0, 0.2, "gemm")]
    found = Html(page(grid(rows, group="family")))
    at = found.texts.index("2 rows")
    assert found.texts[at - 1 : at + 3] == ["gemm", "2 rows", "50 ns", "50.0 %"]


def test_rows_that_are_left_out_are_one_row_with_their_sums() -> None:
    n = MOST_ROWS + 7
    found = Html(page(grid([(f"k{i}", 10, 1.0, 1 / n, "gemm") for i in range(n)])))
    at = found.texts.index("and 7 more rows")
    assert found.texts[at + 1] == "70 ns"
    grouped = Html(page(grid([(f"k{i}", 10, 1.0, 1 / n, f"g{i}") for i in range(n)], group="family")))
    assert "and 7 more rows of other groups" in grouped.texts


def test_a_sum_with_an_unknown_part_is_not_shown() -> None:
    found = Html(page(grid([("a", None, 3.0, 0.5, "gemm"), ("b", 5, 5.0, 0.5, "gemm")], group="family")))
    at = found.texts.index("2 rows")
    assert found.texts[at + 1] == "100.0 %"


def test_what_is_lacking_is_said_in_one_place() -> None:
    blocks = [Block("steps", "Steps", lacking="marks of steps"), Block("kernels", "Kernels", [Words("x")])]
    found = Html(render_page(blocks, title="t").html)
    at = found.texts.index("marks of steps")
    assert found.texts[at - 2 : at] == ["What this page can't show", "Steps"]
    assert "steps" not in {attrs.get("id") for attrs in found.all("section")}


@pytest.mark.parametrize("name", [*HOSTILE, "</script><script>alert(1)</script>", "<!--", "\u2028", "x" * 10_000])
def test_a_hostile_name_is_text_wherever_it_stands(name: str) -> None:
    parts: list[Part] = [
        Words(name),
        Facts([(name, name)]),
        Points([Point(name, mark=name, aside=name, detail=[name])], name),
        grid([(name, 1, 1.0, 1.0, name)], group="family"),
        Chart(name, name, [{"type": "bar", "y": [name], "x": [1], "text": [name], "name": name}], {}),
    ]
    html = render_page([Block("kernels", name, parts)], title=name).html
    found = Html(html)
    plain = Html(page(*(Words("x") for _ in parts), chart(y=["x"])))
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in plain.tags} | {
        *("table", "thead", "tbody", "tr", "td", "th", "caption", "ul", "small", "dl", "dt", "dd", "span", "code", "h3")
    }
    assert not any(attribute.startswith("on") for _, attrs in found.tags for attribute in attrs)
    assert len(found.all("script")) == html.count("<script") == 2  # a chart's data, ours
    assert not set("\x1b\x9b\u202e\u2066") & set(html)


def test_texts_of_charts_end_no_script_and_numbers_are_finite() -> None:
    text = figure_json(
        Chart(
            "t",
            "a",
            [{"y": ["<b>&"], "text": "a\nb", "x": [float("nan"), 0.1 + 0.2, 7], "hovertemplate": "%{x}<br>"}],
            {},
        )
    )
    assert "<" not in text
    (trace,) = json.loads(text)["data"]
    assert trace == {"y": ["<b>&"], "text": "a\nb", "x": [None, 0.3, 7], "hovertemplate": "%{x}<br>"}


def test_long_names_in_charts_are_cut_and_stay_different() -> None:
    names = ["x" * 10_000, "x" * 10_001]
    (trace,) = json.loads(figure_json(Chart("t", "a", [{"y": names, "text": names}], {})))["data"]
    assert len(set(trace["y"])) == 2
    assert max(map(len, trace["y"])) < 150
    assert max(map(len, trace["text"])) < 1_100


def test_a_page_that_would_be_too_large_loses_its_largest_charts_and_says_so() -> None:
    small, large = chart(x=[1]), chart(x=[i + 0.123456 for i in range(900_000)])
    made = render_page([Block("kernels", "Kernels", [small, large, grid([])])], title="t")
    assert len(made.html.encode()) <= MOST_BYTES
    assert made.left_out == ("Time",)
    assert "This chart is left out" in made.html
    assert 'id="chart-1-data"' in made.html
    assert 'id="chart-2-data"' not in made.html


def test_no_table_makes_the_page_too_large() -> None:
    rows = [(f"{i}<" * 3_000, i, 1.0, 0.1, "<" * 9_000) for i in range(600)]
    parts: list[Part] = [*(grid(rows) for _ in range(8)), Points([Point("<" * 9_000, detail=["<" * 9_000] * 99)] * 999)]
    made = render_page([Block("kernels", "Kernels", parts)], title="t" * 10_000)
    assert len(made.html.encode()) <= MOST_BYTES
    assert "more rows" in made.html
    assert "more characters" in made.html


def test_the_same_run_gives_the_same_bytes_and_is_small() -> None:
    launches = [{"kernel": f"k{i % 3}", "start_ns": 100 * i, "dur_ns": 10 + i} for i in range(40)]
    first, second = (render_page(build_blocks(PageData(trace_of(launches))), title="t").html for _ in range(2))
    assert first == second
    assert len(page(Words("x"))) < 100_000


def test_a_kind_of_chart_that_the_page_does_not_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="pie"):
        figure_json(Chart("t", "a", [{"type": "pie"}], {}))


def test_every_section_renders_for_a_trace_without_anything() -> None:
    found = Html(render_page(build_blocks(PageData(trace_of())), title="empty").html)
    assert "Facts" in found.texts


def colors(theme: int) -> dict[str, str]:
    text = (Path(__file__).parents[3] / "src/inferometer/reports/page/page.css").read_text("utf-8")
    return {
        name: (light, dark)[theme]
        for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", text)
    }


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(color: str, other: str) -> float:
    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


CHANGES = ("slower", "faster")  # fills of boxes whose numbers stand in them


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_marks_have_the_contrast_that_wcag_aa_asks_for(theme: int) -> None:
    """WCAG 2.2: 4.5 to 1 for text (1.4.3), 3 to 1 for marks of charts and borders of controls (1.4.11)."""
    found = colors(theme)
    assert len(found) == 23
    for ground in ("paper", "surface"):
        for name, color in found.items():
            if name in ("paper", "surface", "line") or name.startswith(CHANGES):
                continue
            least = 3.0 if name.startswith("series") else 4.5
            assert contrast(color, found[ground]) >= least, f"{name} on {ground}"


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_names_can_be_read_on_boxes_in_the_colour_of_a_change(theme: int) -> None:
    """In ink on small changes, in the colour of the paper on the largest."""
    for name, color in colors(theme).items():
        if name.startswith(CHANGES):
            text = "paper" if name.endswith("3") else "ink"
            assert contrast(color, colors(theme)[text]) >= 4.5, name
