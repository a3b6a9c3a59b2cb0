"""The reference of `--json`: a JSON Schema for each document, and the page that lists them.

What a field holds stands in its type. The schemas allow further keys, since later releases add some.
"""

import json
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec

from inferometer.reports.schemas.schema import Schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{name}"


def known_schemas() -> dict[str, Schema]:
    """All documents by name: those that views declare, and those that commands do.

    Raises:
        ValueError: Two declare one name.
    """
    found: dict[str, Schema] = {}
    for schema in _declared():
        if schema.name in found:
            raise ValueError(f"the schema {schema.name} is declared twice")
        found[schema.name] = schema
    return dict(sorted(found.items()))


def _declared() -> Iterator[Schema]:
    for module in _modules("inferometer.reports.views"):
        if hasattr(module, "VIEW"):
            yield module.VIEW.schema
    for module in _modules("inferometer.commands"):
        yield from (value for value in vars(module).values() if isinstance(value, Schema))


def _modules(package: str) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        yield import_module(found.name)


def schema_files() -> dict[str, Callable[[], str]]:
    """The text of each schema's file, by its name."""
    return {f"json/{name}.json": partial(json_schema, schema) for name, schema in known_schemas().items()}


def json_schema(schema: Schema) -> str:
    """The JSON Schema of a document."""
    document = schema.declared()
    (top,), parts = msgspec.json.schema_components([document], ref_template=_REF)
    whole = dict(parts.pop(top["$ref"].rpartition("/")[2]))
    whole["properties"] = {"schema": _mark(schema), **{k: v for k, v in whole["properties"].items() if k != "schema"}}
    parts.pop("SchemaMark", None)
    whole["title"] = f"{schema.name}, version {schema.version}"
    return json.dumps(_open({"$schema": _DIALECT, **whole, "$defs": parts}), indent=1, ensure_ascii=False) + "\n"


def _mark(schema: Schema) -> dict[str, Any]:
    values = {"name": {"const": schema.name}, "version": {"const": schema.version}}
    return {"description": "Which document this is.", "type": "object", "properties": values, "required": [*values]}


def _open(part: Any) -> Any:
    """Without the ban on other keys that tests hold documents to, and without the names of Python's classes."""
    if isinstance(part, list):
        return [_open(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _open(each) for key, each in part.items() if (key, each) != ("additionalProperties", False)}


def json_page() -> str:
    listed = "\n".join(
        f"| [`{name}`](json/{name}.json) | {schema.version} | {_subject(schema.declared())} |"
        for name, schema in known_schemas().items()
    )
    return f"""\
# JSON

With `--json` a command prints one document. It begins with what it is, as `inferometer.json_of(result)` does:

```json
{{"schema": {{"name": "kernels", "version": 1}}}}
```

Each document has a [JSON Schema](https://json-schema.org) with the meaning and the unit of every field. They are made
from the types in [`reports/schemas`](../../src/inferometer/reports/schemas), against which tests hold what commands
print of the samples and of real traces: there, a field that is not declared is an error.

## What stays

Within a version, keys are added. None is removed or renamed, and none changes its type, its unit or its meaning. A
key that is declared as always there stays so; one that can't be null doesn't become null. What breaks that raises the
version of the document, with a line in the [changelog](../../CHANGELOG.md). So read the keys that you know, pass over
others, and refuse a version that you don't know.

Not promised: the order of keys and, unless the schema says otherwise, of rows; the words of sentences (remarks,
evidence, reasons, titles); further values of a field that lists some, such as a new cause or kind.

Times are whole nanoseconds where they are counted (`_ns`), and decimals where they are means, medians or modelled.
Shares are 0 to 1. Null is what isn't known or doesn't apply, never 0 or an empty text. A number that is none (NaN)
becomes null.

## Documents

| Name | Version | What prints it, and what it is |
| --- | --- | --- |
{listed}
"""


def _subject(document: type) -> str:
    """The first line of what its file says: the command, and what it prints."""
    words = import_module(document.__module__).__doc__ or ""
    return words.strip().split("\n", maxsplit=1)[0]
