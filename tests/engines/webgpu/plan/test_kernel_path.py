"""Kernel paths: what a file may say, and how its mistakes are reported."""

from pathlib import Path

import pytest

from inferometer.engines.webgpu.plan.kernel_path import PHASES, holds
from inferometer.engines.webgpu.plan.path_files import find_path, parse_path, path_names, read_path
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import FormatError, InputError, UnknownName

MINE = """
name = "mine"
families = ["qwen3"]
base = "llama"
[kernels]
linear = [{ kernel = "linear_thread", constants = { THREADS = 32 } }]
"""
WHOLE = """
name = "short"
families = ["llama"]
[kernels]
rms_norm = [{ kernel = "rms_norm" }]
linear = [{ kernel = "linear_thread" }]
[prefill]
before = [
  { op = "gather", weights = ["embed"], outputs = ["x"], kernels = [{ kernel = "gather" }] },
]
layer = [
  { op = "rms_norm", weights = ["ffn_norm"], inputs = ["x"], outputs = ["normed"], kernels = "rms_norm" },
  { op = "linear", weights = ["up"], inputs = ["normed"], outputs = ["y"], kernels = "linear" },
]
[decode]
before = [
  { op = "gather", weights = ["embed"], outputs = ["x"], kernels = [{ kernel = "gather" }] },
]
[head]
before = [
  { op = "linear", weights = ["lm_head"], inputs = ["x"], outputs = ["logits"], kernels = "linear" },
]
"""


FUSED = """
[decode_fused]
before = [
  { op = "gather", weights = ["embed"], outputs = ["x"], kernels = [{ kernel = "gather" }] },
]
layer = [
  { op = "linear_add", weights = ["o"], inputs = ["x", "x"], outputs = ["x"], kernels = "linear" },
]
"""


@pytest.mark.parametrize("family", ["gemma2", "gemma3", "llama", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"])
def test_each_family_has_a_path_of_its_name(family: str) -> None:
    path = find_path(family)

    assert path.name == family
    assert family in path_names()
    assert all(list(path.phases[phase].places()) for phase in PHASES)


def test_an_unknown_family_is_told() -> None:
    with pytest.raises(UnknownName, match='unknown model family with a kernel path "mamba"'):
        find_path("mamba")


def test_steps_and_lists_of_a_base_stay_where_the_file_has_none(tmp_path: Path) -> None:
    file = tmp_path / "llama.toml"  # the name of a bundled one is no matter
    file.write_text(MINE)

    path = read_path(file)

    step = path.phases["decode"].layer[0]
    assert (path.name, step.label) == ("mine", "linear:qkv_proj")
    assert [(each.kernel, each.constants) for each in path.candidates(step)] == [("linear_thread", {"THREADS": 32})]
    assert path.phases["head"] == find_path("llama").phases["head"]


def test_a_fused_form_goes_with_the_decode_steps_that_it_is_of() -> None:
    decode = WHOLE[WHOLE.index("[decode]") : WHOLE.index("[head]")]

    inherited, own = parse_path(MINE, "mine.toml"), parse_path(MINE + decode, "mine.toml")

    assert inherited.fused == find_path("llama").fused is not None
    assert own.fused is None
    assert find_path("gemma3").fused is None


def test_a_path_may_stand_alone() -> None:
    path = parse_path(WHOLE, "short.toml")

    assert [step.label for _, step in path.phases["prefill"].places()] == ["gather", "rms_norm", "linear"]
    assert [choice.kernel for choice in path.candidates(path.phases["prefill"].before[0])] == ["gather"]


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("[kernels]", "[kernel]", "short.toml: object contains unknown field `kernel`"),
        ('op = "rms_norm"', 'opp = "rms_norm"', "short.toml: prefill.layer[0]: object contains unknown field `opp`"),
        ('"rms_norm" }]', '"rms_morn" }]', 'short.toml: kernels.rms_norm[0]: unknown kernel "rms_morn"'),
        ('op = "rms_norm"', 'op = "norm"', 'short.toml: prefill.layer[0]: unknown op "norm"'),
        ('["llama"]', '["lama"]', "short.toml: families[0]: invalid enum value 'lama'"),
        ('["llama"]', "[]", "short.toml: families: expected one or more of "),
        ('"linear_thread" }]', '"linear_thread", constants = { T = 2 } }]', 'unknown constant "T" of linear_thread'),
        (
            '"linear_thread" }]',
            '"gather" }]',
            "prefill.layer[1].kernels: gather is a kernel of gather, expected linear",
        ),
        (
            '[{ kernel = "linear_thread" }]',
            "[]",
            "short.toml: kernels.linear: expected one or more kernels, found none",
        ),
        ('kernels = "linear"', 'kernels = "lines"', 'prefill.layer[1].kernels: unknown list of kernels "lines"'),
        ('"linear_thread" }]', '"linear_thread", when = "big" }]', 'linear[0].when: unknown condition "big"'),
        ('inputs = ["normed"]', 'inputs = ["norm"]', 'found "norm": nothing writes it'),
        ('inputs = ["x"], outputs = ["normed"]', 'inputs = ["y"], outputs = ["normed"]', "only behind here"),
        ('outputs = ["normed"]', 'outputs = ["x"]', "prefill.layer[0]: x is both read and written"),
        (
            'outputs = ["normed"]',
            'outputs = ["seen"]',
            'layer[0].outputs: expected small letters and underscores, found "',
        ),
        ('inputs = ["x"], outputs = ["normed"]', 'outputs = ["normed"]', "layer[0].inputs: rms_norm wants 1, found 0"),
        ('weights = ["ffn_norm"], ', "", "prefill.layer[0].weights: rms_norm wants 1, found 0"),
        ('outputs = ["logits"]', 'outputs = ["scores"]', 'head: expected a step that writes "logits"'),
        ('families = ["llama"]', 'families = ["llama"]\nbase = "lama"', 'short.toml: base: unknown kernel path "lama"'),
        (
            '"linear_thread" }]',
            '"linear_thread", adapters = ["GPU"] }]',
            "[0].adapters[0]: invalid enum value 'GPU'",
        ),
        (
            "[head]",
            FUSED.replace('"linear" }', '[{ kernel = "linear_split" }] }') + "[head]",
            "decode_fused.layer[0].kernels: linear_split: expected a kernel with the constant ADD",
        ),
        (
            "[head]",
            FUSED.replace('["x", "x"]', '["y", "x"]') + "[head]",
            "decode_fused.layer[0].inputs: expected what an earl",
        ),
        (
            "[head]",
            FUSED.replace('outputs = ["x"], kernels = "linear"', 'outputs = ["y"], kernels = "linear"') + "[head]",
            "decode_fused.layer[0]: linear_add adds to its first input",
        ),
        (
            '{ op = "gather", weights = ["embed"], outputs = ["x"], ',
            '{ op = "gather", weights = ["embed"], outputs = ["x"], when = "sparse", ',
            'before[0].when: unknown condition "sparse"',
        ),
        (WHOLE[WHOLE.index("[decode]") :], "", "short.toml: decode: expected steps, found none"),
    ],
)
def test_a_mistake_is_told_with_its_place(wrong: str, right: str, message: str) -> None:
    assert wrong in WHOLE

    with pytest.raises(FormatError) as error:
        parse_path(WHOLE.replace(wrong, right), "short.toml")

    assert message in error.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a kernel path, found nothing"),
        (b"name = ", "expected TOML, found: Invalid value"),
        (b"\xff\xfe", "expected TOML in UTF-8, found byte 0xff"),
        (b'name = 1\nfamilies = ["llama"]', "name: expected `str`, got `int`"),
    ],
)
def test_what_is_no_path_is_told(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_bytes(content)

    with pytest.raises(FormatError) as error:
        read_path(file)

    assert error.value.message.startswith(f"{file}: {message}")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_path(tmp_path / "none.toml")


def test_conditions_are_asked_of_the_model_and_the_program() -> None:
    gemma, llama = (open_checkpoint(name).spec for name in ("tiny-gemma3", "tiny-llama"))

    assert [holds("sandwich", spec) for spec in (gemma, llama)] == [True, False]
    assert [holds("not sandwich", spec) for spec in (gemma, llama)] == [False, True]
    assert [holds("greedy", llama, greedy=greedy) for greedy in (True, False)] == [True, False]
    assert holds(None, llama)
