"""What the names of engines' marks tell: a literal row for each form and each branch of reading it."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

import inferometer
from inferometer.analyses.steps.engine_marks import FORMS, MarkedStep, read_mark
from inferometer.analyses.steps.table import step_table

TOLD = (  # engine; name; step, phase, batch, prefill tokens, decode tokens, context
    # vLLM, with detailed_trace_annotation: a new prompt, a chunk of one, decodes, four tokens per sequence, both
    (
        "vLLM",
        "execute_14721_context_2(sq14721sk14721sqsq108745533sqsk108745533)_generation_0(sq0sk0sqsq0sqsk0)",
        (None, "prefill", 2, 14_721, 0, 0),
    ),
    (
        "vLLM",
        "execute_14721_context_2(sq14721sk16221sqsq108745533sqsk120007533)_generation_0(sq0sk0sqsq0sqsk0)",
        (None, "prefill", 2, 14_721, 0, 1_500),
    ),
    (
        "vLLM",
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
        (None, "decode", 32, 0, 32, 55_054),
    ),
    (
        "vLLM",
        "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)",
        (None, "decode", 32, 0, 128, 65_408),
    ),
    (
        "vLLM",
        "execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)",
        (None, "mixed", 5, 6_144, 3, 7_141),
    ),
    ("vLLM", "execute_9_context_1(sq9sk4sqsq0sqsk0)_generation_0(sq0sk0sqsq0sqsk0)", (None, "prefill", 1, 9, 0, None)),
    # vLLM, annotate_profile
    ("vLLM", "execute_context_1(888)_generation_0(0)", (None, "prefill", 1, 888, 0, None)),
    ("vLLM", "execute_context_1(888_788544)_generation_0(0)", (None, "prefill", 1, 888, 0, None)),
    ("vLLM", "execute_context_0(0)_generation_8(8_4096)", (None, "decode", 8, 0, 8, None)),
    ("vLLM", "execute_context_0(0)_generation_64(64)", (None, "decode", 64, 0, 64, None)),
    ("vLLM", "execute_context_0(0)_generation_64(64) step 1", (None, "decode", 64, 0, 64, None)),
    ("vLLM", "execute_context_1(16)_generation_3(3)", (None, "mixed", 4, 16, 3, None)),
    ("vLLM", "execute_context_0(0)_generation_0(0)", (None, None, 0, 0, 0, None)),  # only caches move
    # vLLM before phases were recorded: a cached request may still read a long prompt
    ("vLLM", "execute_new_2_cached_0", (None, "prefill", 2, None, None, None)),
    ("vLLM", "execute_new_0_cached_8", (None, None, 8, None, None, None)),
    ("vLLM", "execute_new_1_cached_8", (None, None, 9, None, None, None)),
    # SGLang, plain and with roofline_annotations
    ("SGLang", "step[DECODE bs=64]", (None, "decode", 64, 0, 64, None)),
    ("SGLang", "step[EXTEND bs=2 toks=14721]", (None, "prefill", 2, 14_721, 0, None)),
    ("SGLang", "step[EXTEND bs=2]", (None, "prefill", 2, None, 0, None)),
    ("SGLang", "step[MIXED bs=2]", (None, "mixed", 2, None, None, None)),
    ("SGLang", "step[IDLE bs=0]", (None, None, 0, None, None, None)),
    ("SGLang", "step[TARGET_VERIFY bs=8]", (None, None, 8, None, None, None)),
    ("SGLang", "step[decode bs=3]", (None, "decode", 3, 0, 3, None)),
    ("SGLang", "step[prefill bs=1 toks=7]", (None, "prefill", 1, 7, 0, None)),
    ("SGLang", "step[mixed bs=5 ext=40 dec=4]", (None, "mixed", 5, 40, 4, None)),
    ("SGLang", "step[DECODE bs=4 toks=12]", (None, "decode", 4, 0, 12, None)),
    (
        "SGLang",
        "step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sqsk=1050625 c_sk=1025]",
        (None, "prefill", 1, 1_025, 0, 0),
    ),
    (
        "SGLang",
        "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]",
        (None, "prefill", 2, 14_721, 0, 1_500),
    ),
    ("SGLang", "step[DECODE bs=64 g_sqsq=64 g_sqsk=100032 g_sk=100032]", (None, "decode", 64, 0, 64, 99_968)),
    (
        "SGLang",
        "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
        (None, "decode", 64, 0, 128, 130_944),
    ),
    ("SGLang", "step[DECODE bs=64 g_sqsq=256 g_sqsk=262144 g_sk=131072]", (None, "decode", 64, 0, None, None)),
    (
        "SGLang",
        "step[MIXED bs=5 c=2 g=3 c_sq=2048 c_sk=2048 c_sqsq=9 c_sqsk=9 g_sq=3 g_sk=66 g_sqsq=3 g_sqsk=66]",
        (None, "mixed", 5, 2_048, 3, 63),
    ),
    # TensorRT-LLM: the number of the iteration came first, tokens later
    ("TensorRT-LLM", "_forward_step: 1 ctx reqs, 0 gen reqs", (None, "prefill", 1, None, 0, None)),
    ("TensorRT-LLM", "[Executor] _forward_step: 0 ctx reqs, 8 gen reqs", (None, "decode", 8, 0, None, None)),
    ("TensorRT-LLM", "[Executor] _forward_step 12: 2 ctx reqs, 30 gen reqs", (12, "mixed", 32, None, None, None)),
    (
        "TensorRT-LLM",
        "[Executor] _forward_step 13: 2 ctx reqs, 512 ctx tokens, 30 gen reqs",
        (13, "mixed", 32, 512, None, None),
    ),
    (
        "TensorRT-LLM",
        "[Executor] _forward_step 14: 2 ctx reqs, 512 ctx tokens, 0 gen reqs",
        (14, "prefill", 2, 512, 0, None),
    ),
    # ATOM: a graph's batch may be padded; prefills among decodes are counted together
    ("ATOM", "prefill[bs=2 tok=14721 ctx=[7803, 6918]]", (None, "prefill", 2, 14_721, 0, None)),
    (
        "ATOM",
        "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832 sqsk=59768832 sk=17408]",
        (None, "prefill", 6, 17_408, 0, 0),
    ),
    ("ATOM", "decode[bs=117/128 tok=117 d=117]", (None, "decode", 117, 0, 117, None)),
    ("ATOM", "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]", (None, "decode", 32, 0, 128, 65_408)),
    ("ATOM", "eager_decode[bs=2 tok=2 ctx=[9, 8]]", (None, "decode", 2, 0, 2, None)),
    (
        "ATOM",
        "decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048]",
        (None, "mixed", 128, None, None, 257_664),
    ),
    ("LMDeploy", "forward_cudagraph", (None,) * 6),
    ("LMDeploy", "forward_eager", (None,) * 6),
)
NONE = (
    "execute_32_context_0(sq0sk0)_generation_32(sq32sk55086)",  # sums are lacking
    "execute_context_1(888)",
    "execute_context_1(888_)_generation_0(0)",
    "execute_new_1",
    "step[MIXED temperature=0.5]",
    "step[DECODE bs=]",
    "[Executor] _forward_step 12",
    "_forward_step 12: 18 gen reqs",
    "prefill",
    "decode[tok=3]",
    "capture_32_FULL",
    "execute_context_0(0)_generation_1(99999999999999999999)",
    "gpu_model_runner: forward",
)
VLLM = Path(__file__).resolve().parents[3].parent / "shared/data/traces/kineto/mi300_vllm_gpt-oss_decode.json.gz"


@pytest.mark.parametrize(("engine", "name", "told"), TOLD, ids=[name[:60] for _, name, _ in TOLD])
def test_a_mark_tells_what_its_name_says(
    engine: str, name: str, told: tuple[int | None, str | None, int | None, int | None, int | None, int | None]
) -> None:
    found = read_mark(name)
    assert found is not None
    form, step = found
    assert FORMS[form].engine == engine
    assert step == MarkedStep(*told)


@pytest.mark.parametrize("name", NONE)
def test_a_name_that_is_not_exactly_of_a_form_is_no_mark(name: str) -> None:
    assert read_mark(name) is None


def test_every_form_has_a_row_and_says_where_it_is_written_down() -> None:
    assert {form for name in (name for _, name, _ in TOLD) if (form := (read_mark(name) or (-1,))[0]) >= 0} == set(
        range(len(FORMS))
    )
    assert all(form.source for form in FORMS)


@given(st.text(alphabet="execut_contx(sqk)gnra[bs=]0159 :,", max_size=60))
@examples(200)
def test_any_text_is_read_or_refused(name: str) -> None:
    found = read_mark(name)
    assert found is None or isinstance(found[1], MarkedStep)


def test_a_real_decode_step_of_vllm_is_shown_with_its_batch_and_context() -> None:
    if not VLLM.is_file():
        pytest.skip("needs the real traces in shared/data/traces next to the repository")
    with inferometer.open(VLLM) as trace:
        table = step_table(trace)
        assert table.steps.select("phase", "batch", "tokens", "context_len", "mean_kv", "launches").rows() == [
            ("decode", 32, 32, 55_054, 55_086 / 32, 434)
        ]
        first, end = pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("dur_ns")).max()
        device_ns = trace.launches.select(end - first).collect().item()
    assert table.steps["window_ns"].item() == device_ns  # the file holds nothing of what the device did before
