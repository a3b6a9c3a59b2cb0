"""A model's forward pass after `torch.compile`: one region, one graph of Inductor, fewer frames, no inner modules.

Spellings are PyTorch 2.13's: `_inductor/output_code.py` (the graph's mark), `_inductor/runtime/triton_heuristics.py`
(the arguments of a kernel's op). Matmuls and custom ops stay what they are; the rest becomes Triton kernels, one for
each that eager mode has: Inductor fuses more than that.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from .frames import OPS_CALL, builtin, function, module
from .nodes import Frame, Launch, Mark, Node, Op

REGION: Final = "Torch-Compiled Region: 0/0"
_CALLS: Final = (
    "torch/_dynamo/eval_frame.py(1263): _fn",
    "torch/_functorch/aot_autograd.py(1184): forward",
    "torch/_functorch/_aot_autograd/runtime_wrappers.py(709): runtime_wrapper",
    "torch/_functorch/_aot_autograd/utils.py(136): call_func_at_runtime_with_args",
    "torch/_inductor/output_code.py(746): __call__",
)


_RUN: Final = "torch/_inductor/utils.py(3346): run"


class _Fused(NamedTuple):
    name: str
    warps: int
    stages: int
    config: str


_FUSED: Final = {
    "aten::index_select": _Fused("triton_poi_fused_embedding_0", 4, 1, "XBLOCK=512"),
    "sgl_kernel::rmsnorm": _Fused("triton_red_fused__to_copy_mean_mul_pow_rsqrt_1", 16, 1, "XBLOCK=1,R0_BLOCK=2048"),
    "sgl_kernel::fused_add_rmsnorm": _Fused(
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2", 16, 1, "XBLOCK=1,R0_BLOCK=2048"
    ),
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache": _Fused(
        "triton_poi_fused_cat_index_mul_split_sub_3", 4, 1, "XBLOCK=256"
    ),
    "sgl_kernel::silu_and_mul": _Fused("triton_poi_fused_mul_silu_split_4", 4, 1, "XBLOCK=512"),
    "aten::copy_": _Fused("triton_poi_fused__to_copy_5", 4, 1, "XBLOCK=1024"),
}


def compile_model(model: Frame) -> Frame:
    """The same kernels' work in the same order, called from one compiled graph."""
    steps = tuple(_step(op) for op in _launching_ops((model,)))
    call: Frame = function(f"{_source('call')}(812): call", *steps)
    graph = Mark(f"## Call CompiledFxGraph f{_hash(model.name)} ##", (function(_RUN, call),))
    inner: Node = graph
    for name in reversed(_CALLS):
        inner = function(name, inner)
    return module(
        model.name.removeprefix("nn.Module: "),
        "torch/_dynamo/eval_frame.py(1041): compile_wrapper",
        Op("TorchDynamo Cache Lookup"),
        Op(REGION, (), (function("sglang/srt/models/llama.py(448): forward", Op("Pregraph bytecode"), inner),)),
    )


def _launching_ops(nodes: tuple[Node, ...]) -> Iterator[Op]:
    for node in nodes:
        if isinstance(node, Op) and any(isinstance(inner, Launch) for inner in node.body):
            yield node
        elif isinstance(node, Frame | Op):
            yield from _launching_ops(node.body)


def _step(op: Op) -> Frame:
    """A call of the graph's code: a Triton kernel, or what Inductor left as it was."""
    fused = _FUSED.get(op.name)
    if fused is not None:
        return _triton(op, fused)
    if op.name == "aten::mm":
        return builtin("mm", op, of="type")
    return function(OPS_CALL, builtin(op.name.rpartition(":")[2], op, of="torch._ops.OpOverload"))


def _triton(op: Op, fused: _Fused) -> Frame:
    source = _source(fused.name)
    details = (
        ("kernel_hash", source.rpartition("/")[2].removesuffix(".py")),
        ("num_warps", fused.warps),
        ("stream", 0),
        ("kernel_file", source),
        ("kernel_kwargs", fused.config),
        ("num_stages", fused.stages),
        ("kernel_backend", "triton"),
    )
    launches = tuple(
        replace(node, api="cuLaunchKernel", kernel=fused.name, block=(32 * fused.warps, 1, 1))
        for node in op.body
        if isinstance(node, Launch)
    )
    launcher = function("torch/_inductor/runtime/static_triton_launcher.py(268): run", *launches)
    kernel = Op(fused.name, op.arguments, (launcher,), details=details)
    return function("torch/_inductor/runtime/triton_heuristics.py(2060): run", kernel)


def _source(name: str) -> str:
    """The file that Inductor would cache the code in: named by its hash, in a folder named by two letters of that."""
    key = f"c{_hash(name)[:51]}"
    return f"/tmp/torchinductor_root/{key[1:3]}/{key}.py"


def _hash(text: str) -> str:
    """As Inductor writes SHA-256: in base 32, in small letters."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode("ascii").lower().rstrip("=")
