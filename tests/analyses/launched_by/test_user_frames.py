"""Which frames are the user's own."""

import pytest

from inferometer.analyses.launched_by.user_frames import UserCode, python_file

OWN = [
    "train.py(12): main",
    "profile.py(3): run",
    "/home/me/model/attention.py(40): forward",
    "C:\\work\\model.py(3): forward",
    "transformers/models/qwen2/modeling_qwen2.py(218): forward",
    "/usr/local/lib/python3.12/dist-packages/vllm/model_executor/models/llama.py(10): forward",
    "/sgl-workspace/sglang/python/sglang/srt/models/qwen3.py(167): forward_prepare_native",
    "sglang/srt/layers/attention/triton_backend.py(7): forward_extend",
    "vllm/attention/ops/triton/decode.py(7): fwd",
    "<ipython-input-3-abc>(1): <module>",
    "/home/me/model.py:12 forward",
]
TOOLS = [
    "torch/nn/modules/module.py(1779): _call_impl",
    "/usr/lib/python3/dist-packages/torch/nn/functional.py(1): linear",
    "/home/me/rebuild/pytorch/torch/utils/_contextlib.py(120): decorate_context",
    "/home/me/triton/python/triton/runtime/jit.py(5): run",
    "triton/runtime/jit.py(5): run",
    "threading.py(1032): _bootstrap",
    "/usr/lib/python3.11/threading.py(1032): run",
    "asyncio/runners.py(118): run",
    "<frozen runpy>(198): _run_module_as_main",
    "<string>(1): <module>",
    "<eval_with_key>.12(4): forward",
    "/tmp/torchinductor_me/qa/cqaok.py(120): call",
    "<built-in method mm of type object>",
    "nn.Module: Linear_3",
    "libtorch_cpu.so at::native::addmm",
    "",
]


@pytest.mark.parametrize("frame", OWN)
def test_code_that_is_no_tools_is_the_users(frame: str) -> None:
    assert UserCode().is_own(frame)


@pytest.mark.parametrize("frame", TOOLS)
def test_frames_of_tools_compilers_and_the_interpreter_are_not(frame: str) -> None:
    assert not UserCode().is_own(frame)


@pytest.mark.parametrize(
    ("prefix", "is_own"),
    [("sglang/srt/models", True), ("/sgl-workspace", True), ("sglang/srt/layers", False), ("glang/srt", False)],
)
def test_my_code_is_below_a_folder_wherever_that_is(prefix: str, is_own: bool) -> None:
    frame = "/sgl-workspace/sglang/python/sglang/srt/models/qwen3.py(167): forward"
    assert UserCode(my=(prefix,)).is_own(frame) is is_own


def test_my_may_even_be_a_tool() -> None:
    assert UserCode(my=("torch/nn",)).is_own("torch/nn/functional.py(1): linear")


def test_a_framework_of_ones_own_is_no_user_code() -> None:
    code = UserCode(framework=("sglang/srt/layers",))
    assert not code.is_own("/w/python/sglang/srt/layers/linear.py(1): forward")
    assert code.is_own("/w/python/sglang/srt/models/llama.py(1): forward")


def test_the_place_of_installed_packages_is_no_part_of_a_file() -> None:
    assert python_file("/x/lib/python3.12/site-packages/vllm/a.py(3): f") == "vllm/a.py"
    assert python_file("nn.Module: Linear_3") is None
