"""A trace to share: texts that show who and where are blanked, what was measured stays.

Names of kernels and calls, shapes, times, ids and numbers are kept exactly. All other texts of all tables, and of the
facts and losses, go through one `Redactor`: equal texts stay equal, so that call paths, groups and joins hold.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.privacy.metadata import search_metadata
from inferometer.privacy.redaction import KINDS, Redactor
from inferometer.trace.facts import Facts, NamedId, without_folders
from inferometer.trace.losses import Losses
from inferometer.trace.private import AS_THEY_ARE, kinds_blanked
from inferometer.trace.trace import Trace

_KEPT = AS_THEY_ARE | {"unit", "phase", "interpolation", "level"}
_JSON = frozenset({"scalars", "fields"})
_LEFT_OUT = "variables of the environment next to the events (left out)"
_COMMAND = "Command: "
Texts = dict[tuple[str, str], list[str]]


def redact_trace(trace: Trace) -> Trace:
    """The same trace with the texts blanked; `facts.redacted` has the kinds and how many different texts of each.

    The texts of all tables are held in memory, each once.
    """
    redactor = Redactor(trace.names)
    texts = _find_texts(trace)
    _learn(redactor, trace, texts)
    frames = {}
    for table in trace.tables:
        changes = [
            pl.col(column).replace(changed)
            for (of, column), values in texts.items()
            if of == table and (changed := _changed(redactor, column, values))
        ]
        frames[table] = trace.tables[table].with_columns(changes) if changes else trace.tables.raw(table)
    losses = Losses.from_dict(_blanked(redactor, trace.losses.as_dict()))
    facts = _redact_facts(redactor, trace.facts)
    facts = replace(facts, redacted=_count(redactor, trace.losses))
    return Trace(facts, frames, losses, scope=trace.scope)


def describe_redaction(redacted: dict[str, int] | None) -> Iterator[str]:
    """A line for each kind of what was blanked; none where it wasn't asked for."""
    for kind, n in (redacted or {}).items():
        yield f"redacted: {kind}: {n:,}"
    if redacted == {}:
        yield "redacted: found nothing to blank"


def _find_texts(trace: Trace) -> Texts:
    """The different texts of each column that may be blanked."""
    columns = [
        (table, name)
        for table in trace.tables
        for name, dtype in trace.tables[table].collect_schema().items()
        if dtype == pl.String and name not in _KEPT
    ]
    found = pl.collect_all([trace.tables[table].select(pl.col(name).drop_nulls().unique()) for table, name in columns])
    return {
        place: sorted(each.to_series().to_list()) for place, each in zip(columns, found, strict=True) if each.height
    }


def _learn(redactor: Redactor, trace: Trace, texts: Texts) -> None:
    about = msgspec.to_builtins(replace(trace.facts, source=without_folders(trace.facts.source)))
    names = search_metadata("", about).names
    redactor.learn(names.users, users=True)
    redactor.learn({*names.hosts, *trace.facts.hosts}, hosts=True)
    redactor.learn(_strings(about))
    for (_, column), values in texts.items():
        redactor.learn(values, hosts=column == "host")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _strings(key)
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)


def _changed(redactor: Redactor, column: str, values: list[str]) -> dict[str, str]:
    blank = redactor.blank_host if column == "host" else redactor.blank
    changed = {text: new for text in values if (new := blank(text)) != text}
    if column not in _JSON:
        return changed
    return {text: _blank_json(redactor, text) for text in changed}


def _blank_json(redactor: Redactor, text: str) -> str:
    """A text that is JSON stays JSON."""
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return redactor.blank(text)
    return msgspec.json.encode(_blanked(redactor, value)).decode()


def _blanked(redactor: Redactor, value: Any) -> Any:
    if isinstance(value, str):
        return redactor.blank(value)
    if isinstance(value, dict):
        return {_blanked(redactor, key): _blanked(redactor, each) for key, each in value.items()}
    return [_blanked(redactor, each) for each in value] if isinstance(value, list | tuple) else value


def _redact_facts(redactor: Redactor, facts: Facts) -> Facts:
    kept = {name: getattr(facts, name) for name in ("format", "devices", "recorded")}
    own = {
        "hosts": tuple(map(redactor.blank_host, facts.hosts)),
        "processes": tuple(_redact_name(redactor, named) for named in facts.processes),
        "threads": tuple(_redact_name(redactor, named) for named in facts.threads),
        "notes": tuple(_redact_note(redactor, note) for note in facts.notes),
    }
    about = msgspec.to_builtins(replace(facts, source=without_folders(facts.source)))
    rest = {name: _blanked(redactor, each) for name, each in about.items() if name not in {*kept, *own}}
    return replace(msgspec.convert({**about, **rest}, Facts), **kept, **own)


def _redact_name(redactor: Redactor, named: NamedId) -> NamedId:
    name, label = (None if text is None else redactor.blank_process(text) for text in (named.name, named.label))
    return replace(named, name=name, label=label)


def _redact_note(redactor: Redactor, note: str) -> str:
    return redactor.blank_command(note, before=_COMMAND) if note.startswith(_COMMAND) else redactor.blank(note)


def _count(redactor: Redactor, losses: Losses) -> dict[str, int]:
    """Kinds and counts: secrets that were blanked when the trace was read, the rest by the redactor."""
    counted = kinds_blanked(losses)
    for kind, n in redactor.different().items():
        counted[KINDS[kind]] = counted.get(KINDS[kind], 0) + n
    if variables := losses.total("environment"):
        counted[_LEFT_OUT] = variables
    return counted
