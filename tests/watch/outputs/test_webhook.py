"""A webhook: what it gets, how often it is tried, and that nothing waits for it or tells its secret."""

import socket
import time

import pytest
from tests.watch.serving import hook, wait_until

from inferometer.errors import InputError
from inferometer.watch.outputs.webhook import MOST_WAITING, Webhook

_QUICK = (0.01, 0.01, 0.01)


def test_documents_come_in_order_as_json() -> None:
    with hook() as (url, got):
        webhook = Webhook(f"{url}/path?token=x", print)
        for number in range(5):
            webhook.send({"number": number})
        webhook.close()
    assert [document["number"] for _, _, document in got] == [0, 1, 2, 3, 4]
    path, headers, _ = got[0]
    assert (path, headers["Content-Type"]) == ("/path?token=x", "application/json")
    assert (webhook.sent, webhook.failed) == (5, 0)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with hook(lambda number: (status if number < 3 else 200, {})) as (url, got):
        webhook = Webhook(url, print, pauses_s=_QUICK)
        webhook.send({})
        webhook.close()
    assert (len(got), webhook.sent, webhook.failed) == (3, 1, 0)


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (404, 1), (410, 1), (500, 4)])
def test_tries_are_bounded(status: int, tries: int) -> None:
    said: list[str] = []
    with hook(lambda _: (status, {})) as (url, got):
        webhook = Webhook(f"{url}/SECRET?token=SECRET", said.append, pauses_s=_QUICK)
        webhook.send({})
        wait_until(lambda: webhook.failed)
        webhook.close()
    assert len(got) == tries
    assert said == [f"webhook {url}: not delivered: it answered {status}"]


def test_trouble_is_said_once_and_its_end_too() -> None:
    said: list[str] = []
    with hook(lambda number: (404 if number <= 3 else 200, {})) as (url, _):
        webhook = Webhook(url, said.append, pauses_s=_QUICK)
        for _number in range(5):
            webhook.send({})
        webhook.close()
    assert said == [f"webhook {url}: not delivered: it answered 404", f"webhook {url}: delivers again"]


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(code: int) -> None:
    said: list[str] = []
    with hook() as (elsewhere, leaked), hook(lambda _: (code, {"Location": f"{elsewhere}/x"})) as (url, got):
        webhook = Webhook(url, said.append, pauses_s=_QUICK)
        webhook.send({})
        wait_until(lambda: webhook.failed)
        webhook.close()
    assert (len(got), leaked) == (1, [])
    assert str(code) in said[0]


def test_one_that_never_answers_holds_nothing_up() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        webhook = Webhook(f"{url}/SECRET", said.append, timeout_s=0.1, pauses_s=(0.01,))
        began = time.process_time(), time.monotonic()
        for number in range(3 * MOST_WAITING):
            webhook.send({"number": number})
        assert time.process_time() - began[0] < 1
        wait_until(lambda: said)
        webhook.close(wait_s=0.05)
    assert said[0] == f"webhook {url}: not delivered: no answer within 0.1 s"
    assert said[-1].endswith("not delivered before the end")
    assert webhook.failed >= 2 * MOST_WAITING - 1
    assert not any("SECRET" in line for line in said)


def test_what_is_left_at_the_end_counts_as_delivered_nowhere() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        webhook = Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}", said.append, timeout_s=0.3, pauses_s=())
        for number in range(3):
            webhook.send({"number": number})
        webhook.close(wait_s=0.01)
        webhook._thread.join()
    assert webhook.sent == 0
    assert not any(line.endswith("delivers again") for line in said)


def test_nobody_there() -> None:
    said: list[str] = []
    webhook = Webhook("http://127.0.0.1:9/SECRET", said.append, pauses_s=_QUICK)
    webhook.send({})
    wait_until(lambda: webhook.failed)
    webhook.close()
    assert said == ["webhook http://127.0.0.1:9: not delivered: Connection refused"]


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "ftp://h/x", "http://", "http:///SECRET", "http://[SECRET", "http://h:SECRET/", "file:///SECRET"),
        *("http://u:SECRET@h/", "http://h/ä", "http://h/\x00", "http://h/a b", "http://h:99999999/SECRET"),
    ],
)
def test_what_is_no_address_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(InputError) as refused:
        Webhook(url, print)
    assert "SECRET" not in str(refused.value)
    assert "webhook" in str(refused.value)
