"""An event of a watch: as a sentence, and as the document that a webhook gets."""

import datetime as dt
import socket
from typing import Any

from inferometer.privacy.secrets import blank_secrets
from inferometer.reports.views.watched import sentence_of
from inferometer.units import format_duration
from inferometer.watch.session import Event

_LONGEST = 2000
_NS = 10**9


def sentence(event: Event) -> str:
    """What happened; times count from the first step of the watch."""
    if event.change is not None:
        return sentence_of(event.slowdown, event.change, event.first_ns)
    since = format_duration(event.slowdown.alarm.since_ns - event.first_ns)
    why = event.slowdown.why
    return f"Slow since {since}: {why.verdict}. {why.sentence}" if why else f"Slow since {since}."


def document(event: Event, source: str, base_ns: int | None) -> dict[str, Any]:
    """The data of what a webhook gets, without what looks like a secret.

    Args:
        event: What happened.
        source: What is watched.
        base_ns: What to add to times of steps for ns since 1970; None where it isn't known.
    """
    one = event.slowdown
    return {
        "event": event.what.value,
        "text": blank_secrets(sentence(event))[:_LONGEST],
        "source": blank_secrets(source)[:_LONGEST],
        "host": socket.gethostname(),
        "number": event.number + 1,
        "since": date_of(one.alarm.since_ns, base_ns),
        "noticed": date_of(one.alarm.at_ns, base_ns),
        "recovered": date_of(one.recovered.since_ns, base_ns) if one.recovered else None,
        "slowdown": one.as_json(),
    }


def date_of(at_ns: int, base_ns: int | None) -> str | None:
    """`2026-01-31T12:00:00.250Z`; None where the clock isn't known, or of no year that can be written."""
    if base_ns is None:
        return None
    seconds, ns = divmod(at_ns + base_ns, _NS)
    try:
        date = dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{date:%Y-%m-%dT%H:%M:%S}.{ns // 10**6:03}Z"
