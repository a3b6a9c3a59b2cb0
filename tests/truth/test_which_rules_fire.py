"""Of the rules about launches, streams, steps and ranks: which find something in which real capture, and no other.

What such a rule prints, a test of this folder recomputes: of real captures, or of planted faults where none has any.
"""

from importlib import import_module
from pathlib import Path
from shutil import copy

import pytest
from tests.findings.conftest import OF_LAUNCHES

import inferometer
from inferometer.findings.rule import NEEDED

ASKED = (
    *("low_occupancy", "repeated_work", "slow_sibling", "split_k_reductions", "serialised_stream", "attention_growth"),
    *("first_step_warm_up", "disturbed_steps", "tail_step", "host_gap", "graph_breaks", "rank_imbalance"),
)
FIRE = {
    "a100_event_sync": {"low_occupancy"},
    "a100_nccl": {"low_occupancy"},
    "h100_vit": {"low_occupancy"},
    "mi300_sglang_qwen3-8b_decode": {"slow_sibling"},
    "mi300_vit": {"low_occupancy"},
    "v100_graph_branches": {"repeated_work"},
}
FILES = (
    *("a100_event_sync", "a100_idle_64", "a100_nccl", "a100_simple_add", "cpu_only", "h100_qwen1.5-0.5b", "h100_vit"),
    *("mi250_minitoy", "mi300_qwen1.5-0.5b", "mi300_resnet_ddp", "mi300_sglang_qwen3-8b_decode"),
    *("mi300_sglang_qwen3-8b_graph_capture_bs32", "mi300_vit", "mi300_vllm_gpt-oss_decode"),
    *("mi300_vllm_gpt-oss_graph_capture", "rank0_sampled", "rank1_sampled", "triton_example", "v100_graph_branches"),
)


def fire(path: Path) -> set[str]:
    with inferometer.open(path, NEEDED) as trace:
        return {each.rule for each in inferometer.find_findings(trace, rules=ASKED).findings}


@pytest.mark.parametrize("file", FILES)
def test_a_rule_is_silent_where_nothing_is_wrong(file: str, shared_data: Path) -> None:
    assert fire(shared_data / "traces" / "kineto" / f"{file}.json.gz") == FIRE.get(file, set())


def test_two_ranks_that_wait_for_each_other_in_turn_have_none(shared_data: Path, tmp_path: Path) -> None:
    for rank in (0, 1):
        copy(shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz", tmp_path)
    assert fire(tmp_path) == set()


def recomputed() -> set[str]:
    """The rules whose complete texts the tests of this folder recompute: each names its own, `RULE` or `RULES`."""
    modules = [import_module(f"tests.truth.{path.stem}") for path in Path(__file__).parent.glob("test_*.py")]
    of_one = {module.RULE for module in modules if hasattr(module, "RULE")}
    return of_one.union(*(module.RULES for module in modules if hasattr(module, "RULES")))


def test_every_rule_about_launches_and_steps_is_recomputed() -> None:
    """A rule that isn't in `OF_LAUNCHES` is about logs, and `tests/findings/test_rules.py` has its text."""
    assert recomputed() == OF_LAUNCHES | {"disturbed_steps", "host_gap", "tail_step"}
