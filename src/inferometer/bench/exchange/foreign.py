"""Workloads of flashinfer-trace that are shapes of ours too, by the names of their definitions.

Source: the definitions of https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace and the pages of
https://bench.flashinfer.ai/docs on their categories, read 2026-11-22. Taken is what computes the same of the same
tensors; for the others `KNOWN` says what differs. `fused_add_rmsnorm_h*` doesn't give back the sum, ours does.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from typing import Any

from inferometer.bench.exchange.schema import Const, Definition, Safetensors, Scalar, Workload
from inferometer.errors import FormatError, InputError

_EPS = re.compile(r"^\s*eps\s*=\s*([0-9.]+(?:e-?[0-9]+)?)\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Foreign:
    """A workload to translate; `read` gives the integers of an input that lies in a file, `where` names the line."""

    workload: Workload
    definition: Definition | None
    where: str
    read: Callable[[Safetensors, str], list[int]]

    def axis(self, name: str) -> int:
        """The size of a var axis."""
        size = self.workload.axes.get(name)
        if size is None or size < 0:
            raise FormatError(f"{self.where}: axes.{name}: expected a size, found {size}")
        return size

    def integers(self, name: str, count: int) -> list[int]:
        """The numbers of an index input, `count` of them."""
        spec = self.workload.inputs.get(name)
        if not isinstance(spec, Safetensors):
            found = "nothing" if spec is None else "other data"
            raise InputError(
                f"{self.where}: inputs.{name}: lengths aren't known from axes: expected a file, found {found}"
            )
        numbers = self.read(spec, f"{self.where}: inputs.{name}")
        if len(numbers) != count:
            raise FormatError(f"{self.where}: inputs.{name}: expected {count:,} numbers, found {len(numbers):,}")
        return numbers

    def lengths(self, name: str, total: str) -> list[int]:
        """Of the sequences, from their offsets; of one sequence alone, from the axis that is their last offset."""
        if self.axis("len_indptr") == 2:  # 0 and the end
            return [self.axis(total)]
        offsets = self.integers(name, self.axis("len_indptr"))
        lengths = [end - start for start, end in pairwise(offsets)]
        if not offsets or offsets[0] != 0 or min(lengths, default=0) < 0:
            raise FormatError(f"{self.where}: inputs.{name}: expected offsets that begin with 0 and don't fall")
        return lengths


Take = Callable[[Foreign, Mapping[str, int]], tuple[str, dict[str, Any]]]


def _norm(operator: str) -> Take:
    def take(foreign: Foreign, const: Mapping[str, int]) -> tuple[str, dict[str, Any]]:
        eps = None if foreign.definition is None else _EPS.search(foreign.definition.reference)
        args: dict[str, Any] = {"token_count": foreign.axis("batch_size"), "hidden_size": const["hidden_size"]}
        return operator, args if eps is None else {**args, "eps": float(eps[1])}

    return take


def _paged(*, causal: bool) -> Take:
    def take(foreign: Foreign, const: Mapping[str, int]) -> tuple[str, dict[str, Any]]:
        _check_scale(foreign, const["head_dim"])
        pages = foreign.lengths("kv_indptr", "num_kv_indices")
        keys = [count * const["page_size"] for count in pages]
        if const["page_size"] > 1:
            last = foreign.integers("kv_last_page_len", len(pages))
            keys = [each - const["page_size"] + end for each, end in zip(keys, last, strict=True)]
        queries = foreign.lengths("qo_indptr", "total_q") if causal else [1] * foreign.axis("batch_size")
        _check_lengths(foreign, queries, keys)
        sizes = {"num_query_heads": "num_qo_heads", "num_kv_heads": "num_kv_heads"}
        sizes |= {"head_size": "head_dim", "block_size": "page_size"}
        args = {name: const[axis] for name, axis in sizes.items()}
        return "unified_attention", {**args, "seq_lens": keys, "query_lens": queries}

    return take


def _check_scale(foreign: Foreign, head_dim: int) -> None:
    scale = foreign.workload.inputs.get("sm_scale")
    if not isinstance(scale, Scalar):
        raise InputError(f"{foreign.where}: inputs.sm_scale: expected a number, found none")
    if not isclose(float(scale.value), head_dim**-0.5, rel_tol=1e-3):
        want = f"expected {head_dim**-0.5:.6g}, one over the root of the head size"
        raise InputError(f"{foreign.where}: inputs.sm_scale: {want}, found {scale.value:.6g}: not our contract")


def _check_lengths(foreign: Foreign, queries: Sequence[int], keys: Sequence[int]) -> None:
    if len(queries) != len(keys):
        raise FormatError(f"{foreign.where}: expected as many sequences of keys as of queries, {len(queries):,}")
    if not keys:
        raise FormatError(f"{foreign.where}: expected a sequence at least, found none")
    for at, (query, key) in enumerate(zip(queries, keys, strict=True)):
        if query > key:
            raise InputError(
                f"{foreign.where}: sequence {at:,} has {query:,} queries and {key:,} keys: ours has no such"
            )


@dataclass(frozen=True)
class Known:
    """Definitions of a pattern of names: how to take them, or why not; the groups are their constant axes."""

    pattern: str
    take: Take | None = None
    why_not: str = ""


_GQA = r"h(?P<num_qo_heads>\d{1,5})_kv(?P<num_kv_heads>\d{1,5})_d(?P<head_dim>\d{1,5})_ps(?P<page_size>\d{1,5})"

KNOWN: tuple[Known, ...] = (
    Known(r"rmsnorm_h(?P<hidden_size>\d{1,7})", _norm("rms_norm")),
    Known(r"fused_add_rmsnorm_h(?P<hidden_size>\d{1,7})", _norm("fused_add_rms_norm")),
    Known(rf"gqa_paged_decode_{_GQA}", _paged(causal=False)),
    Known(rf"gqa_paged_prefill_causal_{_GQA}", _paged(causal=True)),
    Known(r"gqa_ragged_.*", why_not="its keys are packed, with a causal mask: attention_forward has no mask"),
    Known(
        r"mla_paged_.*", why_not="its cache is paged and split in two: that of mla_decode_attention is packed and one"
    ),
    Known(
        r"moe_fp8_block_scale_.*", why_not="it routes and gives bf16: fp8_blockscale_fused_moe gets experts, gives fp8"
    ),
    Known(r"gdn_.*", why_not="its states lie in no pool and are scaled and laid out in another way than ours"),
    Known(r"gemm_.*", why_not="the catalogue has no plain matrix product"),
    Known(r"(gemma_|fused_add_)?rmsnorm_.*", why_not="its weight or dtype isn't as in rms_norm"),
)
"""In the order that they are tried."""


def take_foreign(name: str, foreign: Foreign) -> tuple[str, dict[str, Any]]:
    """The operator and the arguments of another's workload.

    Raises:
        InputError: The definition isn't one that we have, or the workload doesn't say enough.
    """
    for known in KNOWN:
        match = re.fullmatch(known.pattern, name)
        if match is None:
            continue
        if known.take is None:
            raise InputError(f"{foreign.where}: {name} isn't an operator of ours: {known.why_not}")
        const = {axis: int(size) for axis, size in match.groupdict().items()}
        if foreign.definition is not None:
            _check_definition(foreign, foreign.definition, const)
        return known.take(foreign, const)
    raise InputError(f'{foreign.where}: definition: no operator of ours is known for "{name}"', hint=_HINT)


def _check_definition(foreign: Foreign, definition: Definition, const: Mapping[str, int]) -> None:
    """Whether it is what its name says: sizes, and bf16."""
    for axis, size in const.items():
        found = definition.axes.get(axis)
        if not isinstance(found, Const) or found.value != size:
            raise InputError(f"{foreign.where}: {definition.name}: axes.{axis}: expected {size} as its name has it")
    for name, spec in definition.inputs.items():
        if spec.shape is not None and spec.dtype not in ("bfloat16", "int32", "int64"):
            raise InputError(f"{foreign.where}: {definition.name}: {name} is {spec.dtype}: ours is bfloat16")


_HINT = "Taken are rmsnorm_h*, fused_add_rmsnorm_h*, gqa_paged_decode_* and gqa_paged_prefill_causal_*, and our own."
