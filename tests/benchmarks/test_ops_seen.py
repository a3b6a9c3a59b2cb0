"""The observer and the dispatch mode see the same; benchmarks/ops_seen.py compares more models."""

from pathlib import Path

import pytest
from benchmarks.ops_seen import WAYS, Seen, differences, make_pass, see

from inferometer.record.interception.observer.build import find_observer

pytest.importorskip("transformers", reason="transformers isn't installed")


@pytest.mark.parametrize(
    ("name", "kind"), [("tiny-qwen-moe", "inference"), ("tiny-gemma3", "no_grad"), ("gpt2", "no_grad")]
)
def test_ops_launches_and_modules_of_a_model_are_equal(name: str, kind: str, tmp_path: Path) -> None:
    if (why := find_observer().why) is not None:
        pytest.skip(f"the observer can't be built here: {why}")
    run = make_pass(name, kind)
    mode, observer = (see(run, way, tmp_path) for way in WAYS)
    assert len(observer.launches) > 20
    assert list(differences(mode, observer)) == []


def test_the_first_difference_of_each_kind_is_named() -> None:
    mode = Seen([("aten::mm", "[[1]]"), ("aten::t", "")], [("aten::mm", "layer", None)], ["layer"])
    observer = Seen([("aten::mm", "[[1]]")], [("aten::mm", "layer", "f")], ["layer"])
    assert list(differences(mode, mode)) == []
    assert list(differences(mode, observer)) == [
        "ops 1 of 2: the mode has ('aten::t', ''), the observer nothing",
        "launches 0 of 1: the mode has ('aten::mm', 'layer', None), the observer ('aten::mm', 'layer', 'f')",
    ]
