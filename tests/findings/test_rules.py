"""Each rule on a log in which its fault is planted, in one that is sound, and on both sides of its threshold."""

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.findings.conftest import OF_LAUNCHES, Find
from tests.webgpu_log_files import Dims, write_log

from inferometer.architectures import find_model, require_model
from inferometer.findings.engine import known_rules

LLAMA_1B = Dims(layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128_256)
PARTS_MS = 0.675  # about what ffn_down takes of LLAMA_1B at 50 GB/s, with its launch
SLOW = {"bandwidth_gb_s": 50.0, "dims": LLAMA_1B}
KNOWN: dict[str, Any] = {"options": {"model": require_model("Llama-3.2-1B")}}
MOST = {"high": 3, "medium": 2, "low": 1, "info": 0}


def fused(ms: float) -> dict[str, Any]:
    """The down projection as a kernel of its own in the prefill, fused with a norm in decode, so long a layer."""
    return SLOW | {"decode": {"matmul:ffn_down:L*": None, "matmul_rmsnorm_fused:ffn_down:L*": ms}}


PLANTED: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("fused_slower_than_parts", "four times", fused(4 * PARTS_MS), "high", "3.9"),
    ("fused_slower_than_parts", "a third more", fused(1.45 * PARTS_MS), "medium", "1.4"),
    ("cost_per_kv_position", "0.5 ms each", {"decode": {"attention": lambda kv: 0.5 * kv}}, "high", "499.4"),
    ("cost_per_kv_position", "0.05 ms each", {"decode": {"attention": lambda kv: 0.05 * kv}}, "medium", "μs"),
    (
        "cost_per_kv_position",
        "no attention",
        {"decode": {"rope": lambda kv: 0.5 * kv}},
        "high",
        "rope",
    ),
    ("host_gap", "a third", {"gap_ms": 25.0}, "high", "25."),
    ("host_gap", "a sixteenth", {"gap_ms": 3.5}, "medium", "3.5"),
    ("disturbed_steps", "two of them", {"disturbed": {5: {"*": 1.8}, 9: {"rmsnorm": 60.0}}}, "medium", "6, 10"),
    ("first_token_delay", "0.1 s", {"sampling_ms": 100.0}, "medium", "100.0"),
    ("first_token_delay", "2 s", {"sampling_ms": 2000.0}, "high", "2.000 s"),
    (
        "inconsistent_decode_rate",
        "counts the first token",
        {"rate_counts_first": True, "batches": 40},
        "low",
        "tokens/s",
    ),
    ("inconsistent_decode_rate", "in a short run", {"rate_counts_first": True, "batches": 2}, "medium", "tokens/s"),
    ("zero_byte_load", "0 B", {"zero_byte_load": True}, "low", "0 bytes"),
    ("serial_sampling", "a serial merge", {"decode": {"sample_phase2": 0.6}}, "medium", "sample_phase2"),
    ("serial_sampling", "a small one", {"decode": {"sample_phase2": 0.1}}, "low", "sample_phase2"),
    ("prefill_overhead", "30 ms", {"prefill_gap_ms": 30.0}, "medium", "29.980 ms"),
    ("first_touch", "of two layers", {"first_touch": {0: 4.0, 1: 2.0}}, "medium", "0-1"),
    ("query_set_limit", "fits", {"query_set_fallback": True}, "info", "4,096"),
    ("query_set_limit", "overflows", {"query_set_fallback": True, "batch_tokens": 32}, "medium", "lack passes"),
    ("vocabulary_mismatch", "one more", {"tokenizer_vocab": 32_001}, "info", "32,001"),
    ("vocabulary_mismatch", "padded table", {"tokenizer_vocab": 31_900}, "info", "31,900"),
    ("vocabulary_mismatch", "far more", {"tokenizer_vocab": 40_000}, "low", "40,000"),
    ("missing_resource", "404", {"not_found": True}, "info", "404"),
    ("fallbacks", "in a warning", {"final_norm_fallback": True}, "info", "FinalNorm"),
    (
        "fallbacks",
        "in a reason",
        {"selections": [("matmul", "f16", "adaptive_fallback"), ("attention", "f16", "path")]},
        "info",
        "adaptive_fallback",
    ),
    ("unlayered_kernels", "as usual", {}, "info", "attention"),
    ("reports_as_warnings", "all of them", {"profile_level": "warning"}, "info", "of 34"),
    ("tail_step", "a usual one", {"tail": 3}, "info", "about as long"),
    (
        "tail_step",
        "an expensive one",
        {"tail": 1, "disturbed": {16: {"matmul:ffn_up:L*": 1.6}}},
        "low",
        "longer than expected",
    ),
    (
        "plan_differs_from_execution",
        "a fused kernel unsaid",
        {"decode": {"matmul:o_proj:L*": None, "fused_attention_out:o_proj:L*": 0.084}},
        "low",
        "fused_attention_out",
    ),
    ("plan_differs_from_execution", "a large one unsaid", fused(PARTS_MS), "medium", "matmul_rmsnorm_fused:ffn_down"),
    (
        "plan_differs_from_execution",
        "chosen, never run",
        {"selections": [("matmul", "f16", "path"), ("attention", "f16", "path"), ("conv", "f16", "path")]},
        "low",
        "conv",
    ),
]
IDS = [f"{rule}-{what}" for rule, what, *_ in PLANTED]


@pytest.mark.parametrize(("rule", "what", "changes", "severity", "said"), PLANTED, ids=IDS)
def test_a_planted_fault_is_found(
    find: Find, rule: str, what: str, changes: dict[str, Any], severity: str, said: str
) -> None:
    finding = find(**changes)[rule]
    assert finding.severity == severity
    assert said in " ".join((finding.title, *finding.evidence))


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("fused_slower_than_parts", SLOW),
        ("fused_slower_than_parts", fused(PARTS_MS)),
        ("fused_slower_than_parts", fused(1.2 * PARTS_MS)),
        ("cost_per_kv_position", {"decode": {"attention": 40.0}}),
        ("cost_per_kv_position", {"decode": {"attention": lambda kv: 0.003 * kv}}),
        ("host_gap", {"gap_ms": 1.4}),
        ("disturbed_steps", {"noise": 0.02}),
        ("first_token_delay", {"sampling_ms": 9.0}),
        ("inconsistent_decode_rate", {"batches": 2}),
        ("zero_byte_load", {"load_ms": 5000.0}),
        ("serial_sampling", {"decode": {"sample_phase1": 0.05, "sample_phase2": 0.09, "sample_phase3": 0.05}}),
        ("prefill_overhead", {"prefill_gap_ms": 9.0}),
        ("first_touch", {"first_touch": {0: 1.2}}),
        ("first_touch", {"first_touch": {5: 4.0}}),
        ("query_set_limit", {}),
        ("vocabulary_mismatch", {}),
        ("missing_resource", {}),
        ("fallbacks", {"query_set_fallback": True}),
        ("reports_as_warnings", {"not_found": True}),
        ("tail_step", {"tail": 4}),
        ("tail_step", {"tail": 0}),
        ("plan_differs_from_execution", {"selected": False, "plan": None}),
    ],
)
def test_a_rule_is_silent_where_its_fault_is_not(find: Find, rule: str, changes: dict[str, Any]) -> None:
    assert rule not in find(**changes)


def test_severity_follows_the_size(find: Find) -> None:
    found = [find(gap_ms=gap).get("host_gap") for gap in (0.5, 2.0, 4.0, 40.0)]
    assert [finding and finding.severity for finding in found] == [None, "low", "medium", "high"]


def test_every_rule_that_is_more_than_a_remark_has_a_planted_fault_above_info() -> None:
    graver = {rule for rule, _, _, severity, _ in PLANTED if MOST[severity]}
    tested_below = {
        "far_below_best_rate",
        "missing_resource",
        "fallbacks",
        "unlayered_kernels",
        "reports_as_warnings",
        "pool_overhead",
    }
    assert graver | tested_below == set(known_rules()) - OF_LAUNCHES


class TestFusedKernels:
    def test_bytes_of_the_model_show_one_whose_parts_never_ran(self, find: Find) -> None:
        decode = {"matmul:ffn_gate:L*": None, "matmul:ffn_up:L*": None, "silu": None, "fused_ffn": 90.0}
        changes: dict[str, Any] = SLOW | {"decode": decode}
        assert "fused_slower_than_parts" not in find(**changes)
        finding = find(**changes, options={"model": require_model("Llama-3.2-1B")})["fused_slower_than_parts"]
        assert "far below the best byte rate" in finding.title
        # two matrices of 2048 x 8192 in 16 layers, 2 bytes each, in 90 ms: 11.9 GB/s; the best has about 50 GB/s
        assert re.search(r"at 11\.9\d\d GB/s; .* 4\.2x as much", finding.evidence[1])

    def test_a_sound_one_is_left_alone_with_and_without_the_model(self, find: Find) -> None:
        decode = {"matmul:ffn_gate:L*": None, "matmul:ffn_up:L*": None, "silu": None, "fused_ffn": 16 * 2 * PARTS_MS}
        for model in (None, require_model("Llama-3.2-1B")):
            assert "fused_slower_than_parts" not in find(**SLOW, decode=decode, options={"model": model})

    def test_norms_that_the_parts_need_count_for_the_parts(self, find: Find) -> None:
        norms = {"prefill": {"rmsnorm": 16 * 2 * PARTS_MS}}
        assert "fused_slower_than_parts" not in find(**fused(2 * PARTS_MS), **norms)

    def test_one_that_is_fused_in_the_prefill_may_take_longer_for_more_tokens(self, find: Find) -> None:
        both = {"matmul:ffn_down:L*": None, "fused_down:ffn_down:L*": 2.0}
        assert "fused_slower_than_parts" not in find(**SLOW, prefill=both, prompt_tokens=16)

    def test_size_is_all_its_time_and_the_saving_is_told_apart(self, find: Find) -> None:
        finding = find(**fused(4 * PARTS_MS))["fused_slower_than_parts"]
        assert finding.size_ns == pytest.approx(4 * PARTS_MS * 16 * 64 * 1e6, rel=0.01)
        saved = re.search(r"about ([\d.]+) s", finding.evidence[-1])
        assert saved is not None
        assert finding.size_ns is not None
        assert float(saved[1]) == pytest.approx(finding.size_ns * 0.74e-9, rel=0.02)


class TestPositions:
    def test_with_the_model_a_position_is_held_against_its_bytes(self, find: Find) -> None:
        slow: dict[str, Any] = SLOW | {"decode": {"attention": lambda kv: 0.3 * kv}}
        options = {"model": require_model("Llama-3.2-1B"), "bandwidths": (50e9, 100e9)}
        finding = find(**slow, options=options)["cost_per_kv_position"]
        # 16 layers x 2 x 8 heads x 64 x 2 bytes = 32,768 bytes: 0.655 μs at 50 GB/s
        assert "32.768 kB" in finding.evidence[2]
        assert "458x that at 50.000 GB/s; 915x that at 100.000 GB/s" in finding.evidence[2]
        assert finding.severity == "high"

    def test_growth_that_memory_explains_is_no_finding(self, find: Find) -> None:
        wide = replace(LLAMA_1B, layers=16, kv_heads=8)
        changes: dict[str, Any] = {"dims": wide, "bandwidth_gb_s": 50.0, "prompt_tokens": 60_000, "batch_tokens": 512}
        model = require_model("Llama-3.2-1B")
        found = find(**changes, options={"model": model, "bandwidths": (50e9,)})
        assert "cost_per_kv_position" not in found

    def test_a_slope_that_a_memory_could_have_is_a_remark_without_the_model(self, find: Find) -> None:
        finding = find(bandwidth_gb_s=50.0, prompt_tokens=60_000, batch_tokens=512)["cost_per_kv_position"]
        assert finding.severity == "info"
        # 16 heads for 4 and 4 bytes for 2: eight times the 50 GB/s
        assert re.search(r"that is 40\d\.\d+ GB/s from the cache", finding.evidence[2])

    def test_a_curve_is_no_line(self, find: Find) -> None:
        assert "cost_per_kv_position" not in find(decode={"attention": lambda kv: 5 * (kv % 7)})

    def test_longer_contexts_are_said_for_powers_of_two(self, find: Find) -> None:
        finding = find(decode={"attention": lambda kv: 0.5 * kv})["cost_per_kv_position"]
        assert "at 128 and" in finding.evidence[-1]
        assert "at 512 positions" in finding.evidence[-1]


class TestByteRates:
    @pytest.mark.parametrize(
        ("role", "outputs", "times", "severity"),
        [
            ("q_proj", 2048, 1, None),
            ("q_proj", 2048, 2.5, None),
            ("q_proj", 2048, 4, "high"),
            ("k_proj", 512, 6, "medium"),
        ],
    )
    def test_a_plain_kernel_is_held_against_the_best_of_the_run(
        self, find: Find, role: str, outputs: int, times: float, severity: str | None
    ) -> None:
        ms = times * 2 * 2048 * outputs / 50e9 * 1e3  # at 50 GB/s, so often
        finding = find(**SLOW, **KNOWN, decode={f"matmul:{role}:L*": ms}).get("far_below_best_rate")
        assert (finding and finding.severity) == severity

    def test_small_kernels_are_bound_by_their_launch(self, find: Find) -> None:
        assert "far_below_best_rate" not in find(**SLOW, **KNOWN, decode={"rmsnorm": 5.0, "rope": 5.0})

    def test_without_dimensions_nothing_is_said_of_rates(self, find: Find) -> None:
        assert "far_below_best_rate" not in find(**SLOW, decode={"matmul:q_proj:L*": 9.0})


class TestMemory:
    def test_a_pool_of_powers_of_two_is_named_when_it_makes_the_digits(self, find: Find) -> None:
        model = require_model("Llama-3.2-1B")
        mib = 16 * (3 * 32 + 8 + 8 + 2 + 2) + 512  # 33,554,432 bytes are 32 MiB; the embedding rounds to 512
        factor = mib * 2**20 / LLAMA_1B.weight_bytes
        found = find(dims=LLAMA_1B, pool_factor=factor, options={"model": model})
        assert "pool_overhead" not in found  # 0.1 % more

    @pytest.mark.parametrize(("factor", "severity"), [(1.04, None), (1.1, "low"), (1.4, "medium")])
    def test_memory_beyond_the_weights(self, find: Find, factor: float, severity: str | None) -> None:
        finding = find(dims=LLAMA_1B, pool_factor=factor, options={"model": find_model("Llama-3.2-1B")}).get(
            "pool_overhead"
        )
        assert (finding and finding.severity) == severity
        assert finding is None or len(finding.evidence) == 1  # and no cause is made up

    def test_without_dimensions_nothing_is_said_of_memory(self, find: Find) -> None:
        assert "pool_overhead" not in find(pool_factor=3.0)

    def test_the_model_is_found_by_its_name_only_where_what_is_printed_agrees(self, find: Find) -> None:
        name = "meta-llama/Llama-3.2-1B-Instruct"
        assert "pool_overhead" in find(model=name, dims=LLAMA_1B, pool_factor=1.5)
        assert "pool_overhead" not in find(model=name, dims=replace(LLAMA_1B, layers=15), pool_factor=1.5)


class TestWords:
    @pytest.mark.parametrize(
        "words",
        [
            {"ffn_down": "down_proj", "matmul_rmsnorm_fused": "gemv_norm_fused", "matmul": "gemv"},
            {"ffn_down": "mlp.down", "matmul_rmsnorm_fused": "fused_linear"},
        ],
    )
    @pytest.mark.parametrize("syntax", ["colon", "dot"])
    def test_other_words_for_operators_and_roles_change_nothing(
        self, find: Find, words: dict[str, str], syntax: str
    ) -> None:
        usual = find(**fused(4 * PARTS_MS), selected=False, plan=None)
        other = find(**fused(4 * PARTS_MS), selected=False, plan=None, words=words, syntax=syntax)
        assert {name: finding.severity for name, finding in other.items()} == {
            name: finding.severity for name, finding in usual.items()
        }
        assert other["fused_slower_than_parts"].size_ns == usual["fused_slower_than_parts"].size_ns

    def test_a_dotted_role_is_a_role(self, find: Find) -> None:
        text = write_log(**fused(4 * PARTS_MS), syntax="dot", words={"ffn_down": "mlp.down"})
        assert ":L3.mlp.down" in text
        assert "fused_slower_than_parts" in find(text)


def test_a_last_step_after_too_few_known_times_for_a_line_is_held_against_those_before(find: Find) -> None:
    text = write_log(batches=3, batch_tokens=4, tail=2)
    first, *others = re.split(r"(?=^.*Batch decode)", text, flags=re.MULTILINE)
    cut = [re.sub(r"^─+\nTOTAL.*\n\n?", "", each, flags=re.MULTILINE) for each in others[:2]]
    assert "median of the" in find("".join([first, *cut, *others[2:]]))["tail_step"].evidence[0]


def test_a_disturbed_step_is_one_that_took_longer_than_its_work_explains(find: Find) -> None:
    found = find(disturbed={5: {"*": 1.8}})["disturbed_steps"]
    assert found.title == "1 of 17 steps took longer than their work explains: 6"
    assert "inferometer steps" in found.next


def test_a_query_set_that_is_too_small_for_a_single_token_asks_for_no_smaller_step(find: Find) -> None:
    text = write_log(query_set_fallback=True).replace("fallback 4096", "fallback 16")
    found = find(text)["query_set_limit"]
    assert "From 1 token a step on" in found.evidence[0]
    assert found.next.startswith("Use several sets")


class TestBestRate:
    """The rate that slow kernels are held against is of kernels that read whole matrices, from times that tell it."""

    def test_rows_gathered_from_a_cache_are_no_rate_of_the_device(self, find: Find) -> None:
        long = {"prompt_tokens": 900, "prefill": {"gather": 0.01}}
        assert "far_below_best_rate" not in find(**SLOW | long, **KNOWN)

    def test_a_time_of_a_few_last_digits_tells_no_rate(self, find: Find) -> None:
        quick = {"prefill": {"matmul:k_proj:L*": 0.01}, "digits": 2}
        assert "far_below_best_rate" not in find(**SLOW | quick, **KNOWN)


class TestRateDefinedTwice:
    """Digits that time and rate were rounded to are no second definition."""

    def test_the_times_last_digit_counts(self, find: Find) -> None:
        text = write_log(batches=4)
        text = re.sub(r"Decode: \d+ms", "Decode: 30ms", re.sub(r"decode=\d+\.\dms", "decode=30.1ms", text))
        rate = re.compile(r"decode=\d+\.\d\d$", re.MULTILINE)
        near, far = (rate.sub(f"decode={16e3 / ms:.2f}", text) for ms in (30.14, 30.2))
        assert "inconsistent_decode_rate" not in find(near)
        assert find(far)["inconsistent_decode_rate"].severity == "low"

    def test_a_line_of_performance_of_another_prompt_says_nothing(self, find: Find) -> None:
        text = write_log(rate_counts_first=True, batches=40)
        other = re.sub(r"Decode: \d+ms \(\d+ tokens", "Decode: 77ms (3 tokens", text)
        assert "inconsistent_decode_rate" not in find(other)


def test_growth_is_not_promised_beyond_the_windows_of_the_layers(find: Find) -> None:
    gemma = require_model("gemma-3-1b")
    text = write_log(model="gemma-3-1b", decode={"attention": lambda kv: 0.5 * kv}, batches=40)
    evidence = " ".join(find(text, options={"model": gemma})["cost_per_kv_position"].evidence)
    assert "22 of the 26 layers see 512 positions at most" in evidence
