"""What a plan holds: bindings, constants, cuts, costs, reasons."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.engines.webgpu.plan_cases import adapter, answer

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CACHE_F32, CacheFormat
from inferometer.backends.wgsl.source import read_kernel
from inferometer.backends.wgsl.weight_formats import F16, F32, Q4, Q4K, Q6K, Q8, WeightFormat
from inferometer.engines.webgpu.plan.difference import diff_plan
from inferometer.engines.webgpu.plan.path_files import find_path, parse_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import FUSED, Candidate, TuneKey, tunable
from inferometer.engines.webgpu.program import Dispatch, Pass
from inferometer.engines.webgpu.program_memory import memory_of
from inferometer.engines.webgpu.run.executor import LoadedModel, Selection
from inferometer.engines.webgpu.run.limits import check_fit
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.seeded import RandomCheckpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import InputError

MODELS = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma2", "tiny-gemma3", "tiny-gemma3-26l")
MIXTURES = ("tiny-mixtral", "tiny-qwen-moe")
PATH_WITH_SPLIT = parse_path(
    """
    name = "split"
    families = ["qwen2"]
    base = "qwen2"
    [kernels]
    linear = [{ kernel = "linear_split", then = "linear_sum", constants = { SPLITS = 3 } }]
    """,
    "split.toml",
)
DECODE = Pass(("decode", "head"), 1, 20)
EXACT: dict[str, Any] = {"cache": CACHE_F32}
"""Of plans whose sums run in another order: rounding keys and values would make more of their differences."""


def plan(model: str, *features: str, **options: Any) -> LoadedModel:
    return plan_model(open_checkpoint(model), adapter(*features), capacity=64, most_rows=16, **options)


def selection(loaded: LoadedModel, phase: str, op: str, role: str | None = None) -> Selection:
    return next(each for each in loaded.selections if (each.phase, each.op, each.role) == (phase, op, role))


def of_weights(dispatches: Sequence[Dispatch]) -> list[Dispatch]:
    return [each for each in dispatches if each.op in ("linear", "gate_up")]


@pytest.mark.parametrize("features", [(), ("shader-f16",), ("subgroups",)])
@pytest.mark.parametrize("model", [*MODELS, *MIXTURES])
def test_every_binding_fits_and_every_constant_is_given(model: str, features: tuple[str, ...]) -> None:
    loaded = plan(model, *features)

    check_fit(loaded.program, loaded.contents, adapter(*features), read_kernel)

    assert set(loaded.program.requires) == set(features)
    assert len(set(map(repr, loaded.program.pipelines))) == len(loaded.program.pipelines)


@pytest.mark.parametrize("model", MODELS)
def test_a_decode_step_reads_every_matrix_once(model: str) -> None:
    spec = open_checkpoint(model).spec
    shapes = {name: slot.shape for name, slot in weight_slots(spec).items()}
    matrices = sum(shape[0] * shape[1] for name, shape in shapes.items() if len(shape) == 2 and name != "embed")
    matrices += spec.vocab * spec.hidden if spec.tied else 0  # as the head
    biases = sum(shape[0] for name, shape in shapes.items() if name.endswith("_bias"))

    dispatches = of_weights(DECODE.dispatches(plan(model).program))

    rows = sum(4 * int(each.shapes.split("]")[0].split(",")[1]) for each in dispatches)  # of x: [1,64] x …
    assert sum(each.bytes_read.at(1, 20) for each in dispatches) == 2 * matrices + 4 * biases + rows
    activations = sum(9 if spec.activation == "gelu_tanh" else 3 for _ in range(spec.layers)) * spec.intermediate
    assert sum(each.flops.at(1, 20) for each in dispatches) == 2 * matrices + biases + activations


@pytest.mark.parametrize("model", MIXTURES)
@pytest.mark.parametrize("binding_bytes", [2**27, 20_480])
def test_a_decode_step_reads_the_chosen_experts_only(model: str, binding_bytes: int) -> None:
    """Of matrices in parts, all parts together."""
    spec = open_checkpoint(model).spec
    assert spec.experts is not None
    size, each, hidden = spec.experts.size, spec.experts.each, spec.hidden
    loaded = plan_model(open_checkpoint(model), adapter(binding_bytes=binding_bytes), capacity=64, most_rows=16)
    up, down = (
        [one for one in loaded.program.phases["decode"] if (one.op, one.layer) == (op, 2)]
        for op in ("expert_gate_up", "expert_down")
    )

    assert len(up) == len(down) == (1 if binding_bytes > 2**20 else 4 if model == "tiny-mixtral" else 2)
    of_up = len(up) * 4 * (hidden + each)  # in each part the row, and its experts' numbers
    assert sum(one.bytes_read.at(1, 0) for one in up) == 2 * each * 2 * size * hidden + of_up
    assert sum(one.flops.at(1, 0) for one in up) == each * (4 * size * hidden + 3 * size)
    assert sum(one.bytes_written.at(1, 0) for one in up) == 4 * each * size
    of_down = 4 * (each * size + 2 * each * len(down) + hidden * (len(down) - 1))
    assert sum(one.bytes_read.at(1, 0) for one in down) == 2 * each * size * hidden + of_down
    assert sum(one.flops.at(1, 0) for one in down) == each * (2 * size * hidden + 2 * hidden)


@pytest.mark.parametrize("model", MIXTURES)
def test_experts_in_parts_give_the_same_answer_and_parts_have_whole_experts(model: str) -> None:
    whole, parts = (
        plan_model(open_checkpoint(model), adapter(binding_bytes=size), capacity=64, most_rows=16)
        for size in (2**27, 20_480)
    )

    assert len(parts.program.phases["prefill"]) > len(whole.program.phases["prefill"])
    np.testing.assert_allclose(answer(parts)[0], answer(whole)[0], atol=1e-5)
    names = [each.name for each in parts.program.buffers if each.name.startswith("layers.2.expert_down")]
    rows = np.concatenate([parts.contents[name].read() for name in names])
    np.testing.assert_array_equal(rows[64:128], open_checkpoint(model).matrix("layers.2.experts.1.down"))


def test_an_expert_that_no_binding_holds_is_told() -> None:
    with pytest.raises(
        InputError, match=r"expert_gate: expected 96 rows of 128 bytes within a binding, found room for 10"
    ):
        plan_model(open_checkpoint("tiny-mixtral"), adapter(binding_bytes=10_240), capacity=8, most_rows=8)


@pytest.mark.parametrize("form", [F32, Q8, Q4], ids=lambda form: form.name)
def test_experts_of_another_format_are_read_as_such(form: WeightFormat) -> None:
    checkpoint = open_checkpoint("tiny-mixtral")
    loaded = plan_model(checkpoint, adapter(), capacity=64, most_rows=16, weights=form)

    assert loaded.contents["layers.0.expert_down"].read().nbytes == 4 * 64 * form.row_bytes(96)
    exact, _ = answer(plan_model(checkpoint, adapter(), capacity=64, most_rows=16, weights=F32))
    assert np.corrcoef(answer(loaded)[0], exact)[0, 1] >= {"f32": 0.999999, "q8": 0.999, "q4": 0.8}[form.name]


def test_steps_of_experts_are_counted_in_the_layers_that_have_them() -> None:
    loaded = plan("tiny-qwen-moe", "shader-f16", "subgroups")

    planned = {(each.phase, each.role or each.op): each.count for each in loaded.planned}
    assert (planned["decode", "ffn_down"], planned["decode", "expert_down"], planned["prefill", "router"]) == (1, 2, 2)
    labels = [each.label for each in loaded.program.phases["decode"]]
    assert [label for label in labels if "down" in label] == [
        *("linear:ffn_down:L0", "expert_down:L1", "linear:shared_expert_down:L1"),
        *("expert_down:L2", "linear:shared_expert_down:L2"),
    ]
    assert diff_plan(loaded, [DECODE]).rows == ()


@pytest.mark.parametrize("form", [F32, Q8, Q4], ids=lambda form: form.name)
def test_weights_of_another_format_are_planned_for_kernels_that_read_it_and_counted_by_their_bytes(
    form: WeightFormat,
) -> None:
    checkpoint = open_checkpoint("tiny-qwen2")
    halves, loaded = plan("tiny-qwen2", "subgroups"), plan("tiny-qwen2", "subgroups", weights=form)

    check_fit(loaded.program, loaded.contents, adapter("subgroups"), read_kernel)

    reason = selection(loaded, "decode", "linear", "o_proj").reason
    assert f"linear_subgroups refused: it reads float16, the weights are {form.name}" in reason
    down = next(each for each in loaded.program.phases["decode"] if each.role == "ffn_down")
    before = next(each for each in halves.program.phases["decode"] if each.role == "ffn_down")
    n, k = checkpoint.spec.hidden, checkpoint.spec.intermediate
    assert before.bytes_read.at(1, 0) - down.bytes_read.at(1, 0) == n * (2 * k - form.row_bytes(k))
    assert loaded.contents["layers.0.down"].read().nbytes == n * form.row_bytes(k)
    logits, _ = answer(loaded)
    exact, _ = answer(plan_model(checkpoint, adapter(), capacity=64, most_rows=16, weights=F32))
    assert np.corrcoef(logits, exact)[0, 1] >= {"f32": 0.999999, "q8": 0.9995, "q4": 0.95}[form.name]


def test_quantized_weights_in_parts_give_the_same_answer() -> None:
    checkpoint, small = wider("tiny-llama"), adapter(binding_bytes=20_480)

    whole = plan_model(checkpoint, adapter(), capacity=64, most_rows=16, weights=Q4, **EXACT)
    parts = plan_model(checkpoint, small, capacity=64, most_rows=16, weights=Q4, **EXACT)

    check_fit(parts.program, parts.contents, small, read_kernel)
    assert len(parts.program.phases["decode"]) > len(whole.program.phases["decode"])
    np.testing.assert_allclose(answer(parts)[0], answer(whole)[0], atol=1e-5)


def test_rows_that_blocks_do_not_divide_are_refused() -> None:
    spec = msgspec.structs.replace(open_checkpoint("tiny-llama").spec, intermediate=104)
    with pytest.raises(InputError, match="down: expected rows of a multiple of 32 numbers for q4, found 104"):
        plan_model(RandomCheckpoint(spec, {}, 0), adapter(), capacity=8, weights=Q4)
    with pytest.raises(InputError, match="down: expected rows of a multiple of 32 numbers for f32, found 104"):
        plan_model(RandomCheckpoint(spec, {}, 0), adapter(), capacity=8, weights=F32)


class Mixed(RandomCheckpoint):
    """Values are quantized in the last layer, gate in all of them."""

    def own_format(self, name: str) -> WeightFormat:
        return Q6K if name == "layers.2.v" else Q4K if name.endswith(".gate") else F16


def test_a_step_gets_a_kernel_that_reads_the_formats_of_all_layers_and_each_dispatch_its_own() -> None:
    spec = msgspec.structs.replace(open_checkpoint("tiny-gemma3").spec, hidden=256)
    loaded = plan_model(Mixed(spec, {}, 0), adapter("subgroups"), capacity=16, tuned=lambda key, candidates: None)

    products = [each for each in loaded.program.phases["decode"] if each.role in ("qkv_proj", "o_proj", "ffn_gate_up")]
    found = [(each.role, loaded.program.pipelines[each.pipeline]) for each in products]
    formats = [(role, each.kernel, each.constants.get("WEIGHTS")) for role, each in found]
    others = [("o_proj", "linear_subgroups", None), ("ffn_gate_up", "gate_up_thread", F32.code)]
    halves = [("qkv_proj", "linear_thread", F16.code), *others]
    assert formats == [*halves, *halves, halves[0], ("qkv_proj", "linear_thread", Q6K.code), *others]
    reason = selection(loaded, "decode", "linear", "qkv_proj").reason
    assert "linear_subgroups refused: it reads float16, the weights are f16 and q6k" in reason
    assert loaded.matrix_bytes["q6k"] == 64 * Q6K.row_bytes(256)
    with pytest.raises(InputError, match="multiple of 256 numbers for q6k, found 64"):
        plan_model(Mixed(open_checkpoint("tiny-gemma3").spec, {}, 0), adapter(), capacity=16)


def wider(model: str) -> RandomCheckpoint:
    """With rows so long that a small binding holds only some of a matrix."""
    return RandomCheckpoint(msgspec.structs.replace(open_checkpoint(model).spec, hidden=128), {}, 0)


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-qwen2", "tiny-gemma3"])
def test_a_plan_in_parts_gives_the_same_answer(model: str) -> None:
    checkpoint, small = wider(model), adapter(binding_bytes=20_480)

    whole = plan_model(checkpoint, adapter(), capacity=64, most_rows=16, **EXACT)
    parts = plan_model(checkpoint, small, capacity=64, most_rows=16, **EXACT)

    check_fit(parts.program, parts.contents, small, read_kernel)
    labels = [each.label for each in parts.program.phases["decode"]]
    assert sum(label.startswith("gather:") for label in labels) == 5  # 320 rows by 64
    assert labels.count("gate_up:ffn_gate_up:L0") == 3
    assert labels.count("linear:qkv_proj:L0") > 1
    logits, tokens = answer(whole)
    logits_of_parts, tokens_of_parts = answer(parts)
    np.testing.assert_allclose(logits_of_parts, logits, atol=1e-5)
    assert tokens_of_parts == tokens


def test_parts_of_a_matrix_are_its_rows() -> None:
    checkpoint = wider("tiny-qwen2")
    parts = plan_model(checkpoint, adapter(binding_bytes=20_480), capacity=32, most_rows=8)

    names = [each.name for each in parts.program.buffers if each.name.startswith("layers.1.qkv")]
    rows = np.concatenate([parts.contents[name].read() for name in names])

    assert len(names) > 1
    wanted = np.concatenate([checkpoint.matrix(f"layers.1.{name}") for name in "qkv"])
    np.testing.assert_array_equal(rows, wanted)


def test_parts_of_a_table_cost_together_what_it_costs() -> None:
    whole, parts = (
        plan_model(wider("tiny-gemma3"), adapter(binding_bytes=size), capacity=64, most_rows=16).program.phases[
            "decode"
        ]
        for size in (2**27, 20_480)
    )

    rows = [[each for each in phase if each.op == "gather"] for phase in (whole, parts)]

    read = [sum(each.bytes_read.at(1, 0) - 4 for each in phase) for phase in rows]  # the token's id in each
    assert read == [2 * 128, 2 * 128]
    assert [sum(each.bytes_written.at(1, 0) for each in phase) for phase in rows] == [4 * 128 + 4] * 2


def test_a_grid_beyond_one_axis_goes_on_along_the_other() -> None:
    spec = msgspec.structs.replace(open_checkpoint("tiny-llama").spec, vocab=300_000, tied=True)
    loaded = plan_model(RandomCheckpoint(spec, {}, 0), adapter(), capacity=8)

    head = loaded.program.phases["head"][0]

    x, y, z = head.grid_at(1, 0)
    assert (max(x, y) <= 65_535, y, z) == (True, 2, 1)
    assert 75_000 <= x * y < 75_002  # workgroups of four columns


def test_nothing_is_read_before_it_is_loaded() -> None:
    class Closed(RandomCheckpoint):
        def matrix(self, name: str, first: int = 0, last: int | None = None) -> Any:
            raise AssertionError(name)

        def vector(self, name: str) -> Any:
            raise AssertionError(name)

    loaded = plan_model(Closed(open_checkpoint("tiny-gemma3").spec, {}, 0), adapter(), capacity=64)

    assert {each.part for each in loaded.contents.values()} == {"embedding", "layers", "head", "tables"}


@pytest.mark.parametrize(("form", "number_bytes"), [(CACHE_F16, 2), (CACHE_F32, 4)])
def test_attention_of_a_window_stops_growing(form: CacheFormat, number_bytes: int) -> None:
    loaded = plan("tiny-gemma3", cache=form)
    attention = [each for each in loaded.program.phases["decode"] if each.op == "attention"]

    growth = [each.bytes_read.at(1, 60) - each.bytes_read.at(1, 40) for each in attention]

    position = 2 * 2 * 32 * number_bytes  # keys and values of two heads of 32
    assert growth == [0, 0, 20 * position]  # two of three layers see 16 positions


def test_a_window_that_holds_all_positions_is_none() -> None:
    loaded = plan_model(open_checkpoint("tiny-gemma3"), adapter(), capacity=16)

    windows = {each.constants["WINDOW"] for each in loaded.program.pipelines if "WINDOW" in each.constants}

    assert windows == {0}


@pytest.mark.parametrize(("options", "number_bytes"), [({}, 2), (EXACT, 4)])
def test_memory_is_told_by_purpose(options: dict[str, Any], number_bytes: int) -> None:
    loaded = plan("tiny-qwen3", **options)

    memory = memory_of(loaded.program)

    assert {each.purpose for each in memory} == {"weights", "kv_cache", "activations", "tables", "state"}
    assert sum(each.size_bytes for each in memory) == sum(each.size_bytes for each in loaded.program.buffers)
    kv = next(each for each in memory if each.purpose == "kv_cache")
    spec = open_checkpoint("tiny-qwen3").spec
    assert kv.needed_bytes == 2 * spec.layers * 64 * spec.kv_heads * spec.head_dim * number_bytes
    rope = next(each for each in loaded.program.phases["decode"] if each.op == "rope")
    written = spec.head_dim * (4 * spec.heads + 2 * number_bytes * spec.kv_heads)
    assert rope.bytes_written.at(1, 0) == written
    assert all(each.overhead_bytes >= 0 for each in memory)
    weights = next(each for each in memory if each.purpose == "weights")
    vectors = sum(slot.shape[0] for slot in weight_slots(spec).values() if len(slot.shape) == 1)
    assert weights.needed_bytes == 2 * loaded.parameters + 2 * vectors  # vectors are float32


def test_the_reason_says_which_feature_decided() -> None:
    base, half, groups = plan("tiny-llama"), plan("tiny-llama", "shader-f16"), plan("tiny-llama", "subgroups")

    reasons = [selection(each, "decode", "linear", "o_proj").reason for each in (base, half, groups)]

    assert reasons[0].startswith("first of the path that fits; linear_subgroups refused: the adapter lacks subgroups")
    assert reasons[1].startswith("f16: the adapter has shader-f16")
    assert reasons[2] == "subgroups: the adapter has subgroups"
    assert selection(base, "decode", "rope", "kv_write").reason == "first of the path"


def test_a_cpu_has_first_choices_of_its_own() -> None:
    everything = ("shader-f16", "subgroups")
    cpu = plan_model(open_checkpoint("tiny-llama"), adapter(*everything, kind="CPU"), capacity=64)
    gpu = plan_model(open_checkpoint("tiny-llama"), adapter(*everything, kind="DiscreteGPU"), capacity=64)

    of_cpu, of_gpu = (selection(each, "decode", "linear", "o_proj") for each in (cpu, gpu))

    assert (of_cpu.kernel, of_cpu.constants) == ("linear_thread", {"THREADS": 16, "COLUMNS": 8})
    assert of_cpu.reason == "first of the path for adapters of kind CPU"
    assert of_gpu.kernel == "linear_subgroups"
    assert not cpu.program.requires
    planned = {each.role: each.kernel for each in cpu.planned if each.phase == "decode" and each.op == "linear"}
    assert planned["o_proj"] == "linear_thread"  # so that nothing is reported to differ


def test_a_cpu_shares_loads_of_many_rows_where_matrices_are_worth_compiling_for() -> None:
    spec = msgspec.structs.replace(
        open_checkpoint("tiny-llama").spec, hidden=256, intermediate=512, heads=16, head_dim=32
    )
    small = plan_model(open_checkpoint("tiny-llama"), adapter("subgroups", kind="CPU"), capacity=64)
    large = plan_model(RandomCheckpoint(spec, {}, 0), adapter("subgroups", kind="CPU"), capacity=64)

    kernels = [
        {each.kernel for each in one.selections if each.phase == "prefill" and each.op in ("matmul", "attention")}
        for one in (small, large)
    ]
    planned = {each.kernel for each in small.planned if each.phase == "prefill" and each.op == "matmul"}

    assert kernels == [{"matmul_tile", "attention_streaming"}, {"matmul_subgroups", "attention_tiled_subgroups"}]
    assert planned == {"matmul_tile"}  # the path itself has it for such shapes: nothing is reported to differ


def test_what_a_tuner_measured_is_taken() -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        if key != TuneKey("linear", 64, 160, 1):
            return None
        return Candidate("linear_thread", {"COLUMNS": 2, "THREADS": 32}), "1.8 x faster than linear_f16"

    loaded = plan("tiny-llama", tuned=tuned)

    down = selection(loaded, "decode", "linear", "ffn_down")
    assert (down.kernel, down.constants) == ("linear_thread", {"COLUMNS": 2, "THREADS": 32})
    assert down.reason == "tuned: 1.8 x faster than linear_f16"
    assert selection(loaded, "decode", "linear", "o_proj").kernel == "linear_workgroup"


def test_columns_in_splits_are_two_launches_and_the_same_answer() -> None:
    loaded = plan("tiny-qwen2", path=PATH_WITH_SPLIT, **EXACT)

    labels = [each.label for each in loaded.program.phases["decode"] if each.role == "qkv_proj" and each.layer == 1]
    assert labels == ["linear:qkv_proj:L1", "linear_sum:qkv_proj:L1"]
    logits, tokens = answer(loaded)
    wanted, wanted_tokens = answer(plan("tiny-qwen2", **EXACT))
    np.testing.assert_allclose(logits, wanted, atol=1e-5)
    assert tokens == wanted_tokens


def test_no_workgroup_is_larger_than_the_adapter_allows() -> None:
    loaded = plan_model(open_checkpoint("tiny-llama"), adapter(threads=32), capacity=64)

    threads = [
        each.constants.get("THREADS", read_kernel(each.kernel).defaults.get("THREADS", 0))
        for each in loaded.program.pipelines
    ]

    assert max(threads) == 32


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-qwen2", "tiny-qwen3"])
def test_the_fused_form_is_seven_launches_a_layer_and_the_same_answer(model: str) -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        return (FUSED, "1.2 x as fast as separate") if FUSED in candidates else None

    separate, fused = plan(model, **EXACT), plan(model, tuned=tuned, **EXACT)

    launches = [sum(each.layer == 1 for each in one.program.phases["decode"]) for one in (separate, fused)]
    assert launches == [9, 7]
    assert selection(fused, "decode", "linear_add", "o_proj").reason.startswith(
        "fused form of decode, tuned: 1.2 x as fast as separate; first of the path that fits"
    )
    assert not selection(fused, "decode", "rope", "kv_write").reason.startswith("fused")
    weights = [
        sum(each.bytes_read.at(1, 20) for each in one.program.phases["decode"] if "linear" in each.op)
        for one in (separate, fused)
    ]
    spec = open_checkpoint(model).spec  # the same matrices; a norm's weight, and the residual that is added to twice
    assert weights[1] - weights[0] == spec.layers * 3 * 4 * spec.hidden
    logits, tokens = answer(fused)
    wanted, wanted_tokens = answer(separate)
    np.testing.assert_allclose(logits, wanted, atol=1e-5)
    assert tokens == wanted_tokens


def test_a_fused_form_in_parts_gives_the_same_answer() -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        return (FUSED, "tried") if FUSED in candidates else None

    checkpoint, small = wider("tiny-qwen2"), adapter(binding_bytes=20_480)

    whole = plan_model(checkpoint, adapter(), capacity=64, most_rows=16, **EXACT)
    parts = plan_model(checkpoint, small, capacity=64, most_rows=16, tuned=tuned, **EXACT)

    assert [each.label for each in parts.program.phases["decode"]].count("norm_gate_up:ffn_gate_up:L0") == 3
    logits, tokens = answer(parts)
    wanted, wanted_tokens = answer(whole)
    np.testing.assert_allclose(logits, wanted, atol=1e-5)
    assert tokens == wanted_tokens


def test_what_can_be_tuned_is_listed_once_for_each_shape() -> None:
    spec = open_checkpoint("tiny-qwen3").spec

    keys = [key for key, _ in tunable(find_path("qwen3"), spec, adapter())]
    candidates = dict(tunable(find_path("qwen3"), spec, adapter()))

    assert len(set(keys)) == len(keys)
    down = candidates[TuneKey("linear", spec.hidden, spec.intermediate, 1)]
    assert {"linear_thread", "linear_workgroup"} <= {each.kernel for each in down}
    assert not any(read_kernel(each.kernel).requires for each in down)
    assert {(key.op, key.rows) for key in keys} == {
        ("matmul", 64), ("gate_up", 64), ("linear", 1), ("gate_up", 1), ("attention", 1),
        ("norm_linear", 1), ("norm_gate_up", 1),
    }  # fmt: skip
    of_attention = candidates[TuneKey("attention", spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim, 1)]
    assert {each.constants.get("CHUNK") for each in of_attention} == {None, 32, 64, 128}


def test_experts_are_tuned_by_the_shape_of_one() -> None:
    spec = open_checkpoint("tiny-mixtral").spec

    candidates = dict(tunable(find_path("mixtral"), spec, adapter()))

    for key in (TuneKey("expert_gate_up", 96, 64, 1), TuneKey("expert_down", 64, 96, 64)):
        kernels = [each.kernel for each in candidates[key]]
        assert (kernels.count(f"{key.op}_workgroup"), kernels.count(f"{key.op}_thread")) == (5, 5)


def test_a_shape_has_twenty_candidates_or_few_more() -> None:
    spec = open_checkpoint("tiny-qwen3").spec

    for kind in ("CPU", "DiscreteGPU"):
        found = tunable(find_path("qwen3"), spec, adapter("shader-f16", "subgroups", kind=kind))
        assert max(len(candidates) for _, candidates in found) <= 22


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"intermediate": 100}, {}, "tiny-llama: down: expected rows of a multiple of 8 numbers, found 100"),
        ({"head_dim": 12}, {}, "expected heads of a multiple of 8 numbers, 256 at most, found 12"),
        (
            {},
            {"capacity": 3 * 10**6},
            "3000000 positions: expected keys of a layer within the 134,217,728 bytes",
        ),
        ({}, {"capacity": 0}, "expected one position and one row at least, found 0 and 16"),
        ({}, {"path": find_path("gemma3")}, "expected a kernel path for llama, found gemma3 for gemma3"),
    ],
)
def test_what_does_not_fit_is_told(changed: dict[str, Any], options: dict[str, Any], message: str) -> None:
    spec = msgspec.structs.replace(open_checkpoint("tiny-llama").spec, **changed)

    with pytest.raises(InputError) as error:
        plan_model(RandomCheckpoint(spec, {}, 0), adapter(), **{"capacity": 64, "most_rows": 16, **options})

    assert message in error.value.message


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"])
def test_norms_have_labels_of_their_own_and_the_last_one_is_the_final_norm(model: str) -> None:
    loaded = plan(model)

    for phase in ("prefill", "decode"):
        norms = [each.label for each in loaded.program.phases[phase] if "norm" in each.op]
        assert len(norms) == len(set(norms)) == 2 * 3 + 1
        assert norms[0] == "rms_norm:input_norm:L0"
        assert norms[-1].endswith(":final_norm:L2")
        planned = {each.role: each.count for each in loaded.planned if each.phase == phase and "norm" in each.op}
        assert sorted(planned.values()) == [1, 1, 2, 3]
        chosen = {each.role for each in loaded.selections if each.phase == phase and "norm" in each.op}
        assert chosen == planned.keys()
