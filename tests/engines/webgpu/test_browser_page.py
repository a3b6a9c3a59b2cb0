"""What the page of `chat --browser` shows, in a real browser. It needs no device: the test says what one would have."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.reports.page.browser import Tab, chromium, find_chromium

from inferometer.engines.webgpu.browser.server import PageServer

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

IDS = [50_123, 50_321, 50_213]
SUBMISSION = {"passes": [], "tokens": IDS, "times": [], "untimed": 0, "record": 1, "submit": 1, "wait": 1, "read": 1}
TEXT = 'Because <b>light</b> "scatters".'


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Tab]:
    """The page, with its `View` as `view`."""
    with closing(PageServer()) as server, chromium(tmp_path) as tab:
        tab.call("Page.navigate", url=server.url)
        tab.wait(f"location.href === {json.dumps(server.url)} && document.readyState === 'complete'")
        tab.run("import('./view.js').then(({ View }) => { window.view = new View(document); })")
        yield tab


def call(page: Tab, name: str, *values: Any) -> None:
    page.run(f"view.{name}({', '.join(map(json.dumps, values))})")


def test_an_answer_is_text_and_the_numbers_of_its_tokens_are_not(page: Tab) -> None:
    call(page, "event", {"kind": "prompt", "text": "Why?"})
    call(page, "begin", {"timing": "single_pass"}, {})
    call(page, "submission", SUBMISSION)
    before = page.run("document.getElementById('answer').innerText")
    call(page, "event", {"kind": "text", "text": TEXT})
    call(page, "end", "Ready")

    shown = page.run("document.body.innerText")
    assert before == "Why?"
    assert TEXT in shown
    assert page.run("document.getElementById('tokens').textContent") == str(len(IDS))
    assert not any(str(number) in shown.replace(",", "") for number in IDS)


def test_the_next_answer_takes_the_place_of_the_last(page: Tab) -> None:
    for question, answer in (("Why?", TEXT), ("Where?", "There.")):
        call(page, "event", {"kind": "prompt", "text": question})
        call(page, "begin", {"timing": "single_pass"}, {})
        call(page, "event", {"kind": "text", "text": answer})

    assert page.run("document.getElementById('answer').innerText").split() == ["Where?", "There."]
    assert page.run("document.getElementById('tokens').textContent") == "–"
