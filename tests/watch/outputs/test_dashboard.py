"""The dashboard, read and written again by Grafana's own library of its schema (PyPI: grafana-foundation-sdk)."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
_DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "grafana-watch.json"
_OF_PROMETHEUS = (
    "/annotations/list/0/titleFormat"  # of the data source's plugin, which the dashboard's schema leaves out
)


def _again(module: str, model: str, given: dict[str, Any]) -> Any:
    read = getattr(importlib.import_module(f"grafana_foundation_sdk.models.{module}"), model).from_json(given)
    encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
    return json.loads(encoder().encode(read))


def _lost(given: Any, again: Any, place: str = "") -> Iterator[str]:
    """Places of what the schema doesn't have, or has with another value."""
    if isinstance(given, dict) and isinstance(again, dict):
        for key, value in given.items():
            yield from _lost(value, again[key], f"{place}/{key}") if key in again else [f"{place}/{key}"]
    elif isinstance(given, list) and isinstance(again, list) and len(given) == len(again):
        for number, (value, other) in enumerate(zip(given, again, strict=True)):
            yield from _lost(value, other, f"{place}/{number}")
    elif given != again:
        yield place


def _dashboard() -> dict[str, Any]:
    given: dict[str, Any] = json.loads(_DASHBOARD.read_text("utf-8"))
    return given


def test_the_schema_has_every_field_of_the_dashboard() -> None:
    given = _dashboard()
    assert [*_lost(given, _again("dashboard", "Dashboard", given))] == [_OF_PROMETHEUS]


def test_a_field_that_the_schema_has_not_is_noticed() -> None:
    given = _dashboard()
    given["panels"][0]["titel"] = "slow"
    assert "/panels/0/titel" in [*_lost(given, _again("dashboard", "Dashboard", given))]


@pytest.mark.parametrize("panel", _dashboard()["panels"], ids=lambda panel: panel["title"])
def test_options_and_queries_of_each_panel_are_those_of_its_kind(panel: dict[str, Any]) -> None:
    options = panel.get("options", {})
    assert [*_lost(options, _again(panel["type"], "Options", options))] == []
    for query in panel["targets"]:
        assert [*_lost(query, _again("prometheus", "Dataquery", query))] == []
