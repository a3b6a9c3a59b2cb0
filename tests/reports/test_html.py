"""HTML for notebooks: what comes from a file is text, never markup."""

from html.parser import HTMLParser

from tests.reports.conftest import HOSTILE
from tests.traces import trace_of

import inferometer
from inferometer.analyses.tables.summary import Summary


class Page(HTMLParser):
    """The tags and the text of a page; fails where tags don't close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"class", "style"}
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_summary_is_tables_with_its_remarks(summary: Summary) -> None:
    page = Page(inferometer.render_html(summary))
    assert page.tags <= {"div", "b", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert {"Devices", "Top kernels", "NVIDIA H100", "84.362 μs", "rms_norm"} <= set(page.text)


def test_nothing_from_the_file_is_markup(hostile: Summary) -> None:
    page = Page(inferometer.render_html(hostile))
    assert "script" not in page.tags
    assert set(page.text) >= {name for name in HOSTILE if name and "\r" not in name}
    assert "49" not in page.text


def test_long_tables_are_cut_and_say_so() -> None:
    table = inferometer.kernel_table(trace_of([{"kernel": f"k{i}"} for i in range(250)]))
    html = inferometer.render_html(table)
    assert html.count("<tr>") == 201
    assert "50 more rows" in html
