"""What keeps secrets out of a trace: texts of tables and facts are blanked on their way in, and counted.

Names of kernels and calls, kinds and shapes are taken as they are: they come from compilers and runtimes.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
import polars as pl

from inferometer.privacy.metadata import Names, Search, blank_metadata, is_worth_searching, search_metadata
from inferometer.privacy.secrets import blank_secrets, find_secrets, secret_hints, secret_pattern
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

AS_THEY_ARE = frozenset({"kernel", "api", "kind", "device", "input_dims", "input_dtypes", "input_strides"})
_MOST_PLACES = 20
T = TypeVar("T")


def blank_batch(table: str, batch: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    """`batch` with `***` for each secret in its texts; rows that held one are counted by kind and column."""
    blanked = [
        series
        for name, dtype in batch.schema.items()
        if dtype in (pl.String, pl.Categorical) and name not in AS_THEY_ARE
        if (series := _blank_series(f"{table}.{name}", batch[name], losses)) is not None
    ]
    return batch.with_columns(blanked) if blanked else batch


def hold_secrets(texts: Iterable[tuple[str, pl.Series]]) -> bool:
    """Whether `blank_batch` would change any column, each given by its name and its different values."""
    searched = [values.alias("") for name, values in texts if name not in AS_THEY_ARE]
    return bool(searched) and any(blank_secrets(text) != text for text in _suspects(pl.concat(searched)))


def blank_facts(facts: Facts, losses: Losses) -> Facts:
    """`facts` with `***` for each secret, which are counted by kind and field. What the user typed stays."""
    if not is_worth_searching(msgspec.json.encode(facts)):
        return facts
    found: dict[str, object] = {}
    for name in facts.__struct_fields__:
        if name == "source":
            continue
        value = msgspec.to_builtins(getattr(facts, name))
        search = search_metadata(f"facts.{name}", value)
        if any(not secret.masked for secret in search.secrets):
            count_secrets(losses, search)
            found[name] = blank_metadata(value)
    if not found:
        return facts
    return msgspec.convert({**msgspec.to_builtins(facts), **found}, Facts)


def count_secrets(losses: Losses, search: Search) -> Names:
    """Count what was found by kind and place; masks and variables only where everything is read. The names found."""
    places: dict[str, set[str]] = {}
    for secret in search.secrets:
        if secret.masked:
            continue
        known = places.setdefault(secret.kind, set())
        where = secret.place if secret.place in known or len(known) < _MOST_PLACES else "other places"
        known.add(where)
        losses.count("secret", category=f"{secret.kind} in {where}")
    if losses.scope == ALL_TABLES:
        _count_harmless(losses, search)
    return search.names


def _count_harmless(losses: Losses, search: Search) -> None:
    masked = [secret.place for secret in search.secrets if secret.masked]
    for place in masked[:_MOST_PLACES]:
        losses.count("masked_secret", category=place)
    losses.count("masked_secret", len(masked[_MOST_PLACES:]), category="other places")
    for place, variables in list(search.environments.items())[:_MOST_PLACES]:
        losses.count("environment", variables, category=place)


def kinds_blanked(losses: Losses) -> dict[str, int]:
    """Secrets that were blanked or left out, by kind."""
    kinds: dict[str, int] = {}
    for loss in losses:
        if loss.name == "secret" and loss.category:
            kind = loss.category.rpartition(" in ")[0]
            kinds[kind] = kinds.get(kind, 0) + loss.count
    return kinds


def replaced(series: pl.Series, texts: Mapping[str, str]) -> pl.Series:
    """`series` with the values of `texts` for its keys; categories stay categories."""
    plain = series.cast(pl.String).replace(dict(texts))
    return plain.cast(series.dtype)


def _blank_series(place: str, series: pl.Series, losses: Losses) -> pl.Series | None:
    if series.null_count() == len(series):
        return None
    texts = {
        text: blank for text in _suspects(series.unique().cast(pl.String)) if (blank := blank_secrets(text)) != text
    }
    if not texts:
        return None
    for text, rows in series.cast(pl.String).value_counts(name="rows").rows():
        for kind in dict.fromkeys(found.kind for found in find_secrets(text)) if text in texts else ():
            losses.count("secret", rows, category=f"{kind} in {place}")
    return replaced(series, texts)


def _suspects(values: pl.Series) -> pl.Series:
    """The values that may hold a secret: hints first, which are quick to look for."""
    near = values.filter(values.str.contains_any(list(secret_hints()), ascii_case_insensitive=True))
    return near.filter(near.str.contains(secret_pattern())) if near.len() else near
