"""Whole logs: a sound one, three with other words, dimensions and faults, a user's own, and files that are no logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.findings.conftest import OF_LAUNCHES, Find
from tests.latencyprism_files import perf_row, write_run
from tests.traces import trace_of
from tests.webgpu_log_files import Dims, write_log

import inferometer
from inferometer.findings.engine import find_findings, known_rules
from inferometer.findings.finding import Finding
from inferometer.trace.trace import Trace

SENT = "004_b259a8c8aedd2a44.txt"
SAMPLES = Path(__file__).parents[2] / "samples"

SOUND: dict[str, dict[str, Any]] = {
    "usual": {},
    "fused where it helps": {
        "plan": None,
        "selected": False,
        "decode": {"matmul:ffn_down:L*": None, "matmul_rmsnorm_fused:ffn_down:L*": 0.23},
    },
    "a model that is known": {
        "model": "Llama-3.2-1B-Instruct",
        "dims": Dims(layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128_256),
        "tail": 3,
        "pool_factor": 1.02,
    },
    "small steps, no browser": {"batch_tokens": 1, "batches": 60, "gap_ms": 0.2, "tag": None, "syntax": "dot"},
    "long context": {"prompt_tokens": 4_000, "batch_tokens": 16, "batches": 24, "gap_ms": 2.0},
    "cut in the prompt": {"batches": 0},
}

# A fused projection of one workgroup, in a model that is known by its name; colons, and words of another engine.
FUSED = write_log(
    model="acme/Llama-3.2-1B-Instruct",
    dims=Dims(layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128_256),
    bandwidth_gb_s=60.0,
    syntax="colon",
    words={"ffn_down": "down_proj", "ffn_up": "up_proj", "ffn_gate": "gate_proj"},
    prompt_tokens=24,
    batch_tokens=8,
    batches=12,
    tail=5,
    decode={"matmul:ffn_down:L*": None, "matmul_norm_fused:ffn_down:L*": 3.0},
    sampling_ms=80.0,
    first_touch={0: 3.0, 1: 1.6},
    zero_byte_load=True,
    rate_counts_first=True,
    query_set_fallback=True,
    profile_level="warning",
)
# Attention that walks the cache by itself, a serial merge, a busy machine; dots, other roles, a model nobody knows.
SERIAL = write_log(
    model="house-3b",
    dims=Dims(layers=20, hidden=2560, heads=20, kv_heads=5, head_dim=128, ffn=6912, vocab=50_000),
    syntax="dot",
    words={"ffn_down": "mlp.down", "ffn_up": "mlp.up", "ffn_gate": "mlp.gate", "q_proj": "wq"},
    device="globex dawn-7",
    batch_tokens=2,
    batches=40,
    gap_ms=9.0,
    decode={"attention": lambda kv: 0.2 + 0.3 * kv, "sample_phase2": 1.5},
    disturbed={7: {"*": 1.6}, 8: {"rmsnorm": 9.0, "matmul:q_proj:L*": 6.0}},
    not_found=True,
    tokenizer_vocab=50_010,
)
# A feed-forward part in one kernel that is too slow for its bytes, pipelines built in the prefill, a wasteful pool.
ONE_KERNEL = write_log(
    model="Qwen2.5-0.5B",
    dims=Dims(layers=24, hidden=896, heads=14, kv_heads=2, head_dim=64, ffn=4864, vocab=151_936),
    bandwidth_gb_s=200.0,
    batch_tokens=1,
    batches=80,
    gap_ms=0.1,
    decode={"matmul:ffn_gate:L*": None, "matmul:ffn_up:L*": None, "silu": None, "fused_ffn": 21.0},
    prefill_gap_ms=60.0,
    pool_factor=1.4,
    final_norm_fallback=True,
)


@pytest.mark.parametrize("changes", SOUND.values(), ids=SOUND)
def test_nothing_above_info_is_said_of_a_sound_run(find: Find, changes: dict[str, Any]) -> None:
    assert {name: finding.title for name, finding in find(**changes).items() if finding.severity != "info"} == {}


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_noise_makes_no_findings(find: Find, seed: int, noise: float) -> None:
    assert {finding.severity for finding in find(seed=seed, noise=noise).values()} == {"info"}


def test_a_fused_kernel_that_costs_more_than_its_parts(find: Find) -> None:
    assert graver(find(FUSED)) == {
        "fused_slower_than_parts": "high",
        "first_token_delay": "medium",
        "plan_differs_from_execution": "medium",
        "zero_byte_load": "low",
        "first_touch": "low",
        "inconsistent_decode_rate": "low",
    }
    assert remarks(find(FUSED)) == {"query_set_limit", "reports_as_warnings", "tail_step", "unlayered_kernels"}


def test_a_serial_kernel_over_the_cache_on_a_busy_machine(find: Find) -> None:
    assert graver(find(SERIAL)) == {
        "cost_per_kv_position": "high",
        "host_gap": "medium",
        "serial_sampling": "medium",
        "disturbed_steps": "medium",
    }
    assert remarks(find(SERIAL)) == {
        "missing_resource",
        "plan_differs_from_execution",
        "unlayered_kernels",
        "vocabulary_mismatch",
    }


def test_one_kernel_for_a_feed_forward_part_and_a_pool(find: Find) -> None:
    assert graver(find(ONE_KERNEL)) == {
        "fused_slower_than_parts": "high",
        "prefill_overhead": "medium",
        "plan_differs_from_execution": "medium",
        "pool_overhead": "medium",
    }
    assert remarks(find(ONE_KERNEL)) == {"fallbacks", "unlayered_kernels"}


def graver(found: dict[str, Any]) -> dict[str, str]:
    """Rules above `info`, with the severity."""
    return {rule: finding.severity for rule, finding in found.items() if finding.severity != "info"}


def remarks(found: dict[str, Any]) -> set[str]:
    return set(found) - set(graver(found))


@pytest.fixture(scope="module")
def found(seeds: Path) -> tuple[Finding, ...]:
    """Findings of the log that a user sent: gemma-3-1b in a browser."""
    return find_findings(inferometer.open(seeds / SENT), bandwidths=(100e9, 400e9)).findings


class TestUsersLog:
    """What its log says was worked out by hand beforehand."""

    def test_the_fused_projection_comes_first_then_attention(self, found: tuple[Finding, ...]) -> None:
        assert [(finding.rule, finding.severity) for finding in found[:2]] == [
            ("fused_slower_than_parts", "high"),
            ("cost_per_kv_position", "high"),
        ]
        assert "matmul_rmsnorm_fused:ffn_down" in found[0].title
        assert "attention" in found[1].title

    def test_its_numbers_are_those_of_the_log(self, found: tuple[Finding, ...]) -> None:
        said = dict.fromkeys(known_rules(), "")
        for finding in found:
            said[finding.rule] += " ".join((finding.title, *finding.evidence))
        for rule, numbers in {
            "fused_slower_than_parts": ("2.339 ms", "680.000 μs", "3.44x", "6.822 GB/s", "42.0 %"),
            "cost_per_kv_position": ("R² 0.999", "26.624 kB", "at 100.000 GB/s", "at 400.000 GB/s", "6.0 %"),
            "host_gap": ("12.01", "48.0"),
            "disturbed_steps": ("27-29, 39, 54-5",),
            "first_token_delay": ("116.300 ms", "308.100 ms", "191.800 ms", "34.6"),
            "plan_differs_from_execution": (
                "fused_ffn, matmul_rmsnorm_fused:ffn_down",
                "15 decode steps",
                "10 kernels",
            ),
            "tail_step": ("about as long", "197.857 ms"),
            "inconsistent_decode_rate": ("6.33", "6.30", "256", "255"),
            "zero_byte_load": ("1.220 s", "2.000 GB", "1.955 s", "308.973 MB/s", "1.702 GB/s"),
            "pool_overhead": ("2.040 GiB", "1.862 GiB", "2.036 GiB"),
            "serial_sampling": ("sample_phase2", "phase1"),
            "prefill_overhead": ("77.530 ms", "191.800 ms", "114.270 ms"),
            "first_touch": ("Layer 0", "0-3"),
            "query_set_limit": ("2,968", "4,096", "From 6 tokens"),
            "vocabulary_mismatch": ("262,145", "262,144"),
            "missing_resource": ("Line 3", "404"),
            "fallbacks": ("path_override_adaptive_fallback", "Line 23"),
            "unlayered_kernels": ("attention, fused_ffn", "rmsnorm, rope"),
            "reports_as_warnings": ("130 of 132",),
        }.items():
            assert [number for number in numbers if number not in said[rule]] == [], rule

    def test_only_what_costs_much_is_grave(self, found: tuple[Finding, ...]) -> None:
        by_severity: dict[str, set[str]] = {}
        for finding in found:
            by_severity.setdefault(finding.severity, set()).add(finding.rule)
        assert by_severity["medium"] == {
            "host_gap",
            "disturbed_steps",
            "first_token_delay",
            "plan_differs_from_execution",
        }
        assert by_severity["low"] == {
            "inconsistent_decode_rate",
            "zero_byte_load",
            "pool_overhead",
            "serial_sampling",
            "prefill_overhead",
            "first_touch",
        }

    def test_no_chip_is_named(self, found: tuple[Finding, ...]) -> None:
        assert not any("M1" in text or "M3" in text for finding in found for text in (finding.title, *finding.evidence))

    @pytest.mark.parametrize("share", [0.001, 0.01, 0.03, 0.06, 0.3, 0.77, 0.999])
    def test_a_cut_log_has_no_finding_that_the_whole_lacks(
        self, seeds: Path, tmp_path: Path, found: tuple[Finding, ...], share: float
    ) -> None:
        whole = (seeds / SENT).read_bytes()
        path = tmp_path / "cut.log"
        path.write_bytes(whole[: int(share * len(whole))])
        try:
            cut = find_findings(inferometer.open(path))
        except inferometer.errors.InputError:  # nothing of a log is in it yet
            return
        assert {finding.rule for finding in cut.findings} <= {finding.rule for finding in found}


class TestNoLogs:
    @pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz"])
    def test_a_profile_of_launches_has_none_of_the_rules_for_logs(self, name: str) -> None:
        found = find_findings(inferometer.open(SAMPLES / name)).findings
        assert {finding.rule for finding in found} <= OF_LAUNCHES

    def test_an_empty_trace_has_none(self) -> None:
        assert find_findings(trace_of()).findings == ()

    def test_printed_tables_have_none(self, read: Callable[..., Trace]) -> None:
        table = "Time\tTotal Time\tInstances\tName\n95.0%\t9.500 ms\t10\tfused_gemm\n5.0%\t0.500 ms\t10\tsoftmax\n"
        assert find_findings(read(table, name="table.tsv")).findings == ()

    def test_cycles_of_an_unknown_phase_have_none(self, tmp_path: Path) -> None:
        rows = [perf_row(cycle=i, anchor_dur_us=1000 + 900 * (i == 9)) for i in range(1, 20)]
        assert find_findings(inferometer.open(write_run(tmp_path / "run", rows))).findings == ()

    def test_steps_alone_may_show_a_gap_and_disturbances(self) -> None:
        usual: dict[str, Any] = {"phase": "decode", "decode_tokens": 1, "source": "recorded"}
        steps = [
            usual
            | {"step": i, "start_ns": i * 40_000_000, "dur_ns": 30_000_000 + (i == 9) * 9_000_000}
            | {"gpu_busy_ns": 20_000_000 + (i % 3) * 10_000}
            for i in range(20)
        ]
        found = {finding.rule: finding for finding in find_findings(trace_of(steps=steps)).findings}
        assert set(found) <= {"host_gap", "disturbed_steps"}
        assert found["host_gap"].severity == "high"
        assert found["host_gap"].size_ns == sum(step["dur_ns"] - step["gpu_busy_ns"] for step in steps)
