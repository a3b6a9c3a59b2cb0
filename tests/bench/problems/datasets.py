# ruff: noqa: E501  a definition a block
"""A data set of flashinfer-bench of our own, small: a definition of every kind that the public one has.

The interfaces are those that https://bench.flashinfer.ai/docs describes, the references are written for the tests.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Tensors = Mapping[str, tuple[Sequence[str] | None, str]]


def definition(name: str, op_type: str, axes: Mapping[str, int | None], inputs: Tensors, outputs: Tensors,
               reference: str, constraints: Sequence[str] = ()) -> Json:  # fmt: skip
    """`axes`: None is var."""

    def specs(tensors: Tensors) -> Json:
        found: Json = {}
        for key, (shape, dtype) in tensors.items():
            found[key.rstrip("?")] = {"shape": None if shape is None else list(shape), "dtype": dtype}
            if key.endswith("?"):
                found[key.rstrip("?")]["optional"] = True
        return found

    sizes = {axis: {"type": "var"} if size is None else {"type": "const", "value": size} for axis, size in axes.items()}
    return {
        "name": name, "op_type": op_type, "axes": sizes, "inputs": specs(inputs), "outputs": specs(outputs),
        "reference": reference, "constraints": list(constraints), "tags": ["status:test"],
    }  # fmt: skip


GEMM = definition(
    "gemm_n24_k40", "gemm", {"M": None, "N": 24, "K": 40}, {"A": (("M", "K"), "float16"), "B": (("N", "K"), "float16")},
    {"C": (("M", "N"), "float16")}, "import torch\n\ndef run(A, B):\n    return (A.float() @ B.float().T).to(A.dtype)\n",
)  # fmt: skip
NORM = definition(
    "rmsnorm_h48", "rmsnorm", {"batch_size": None, "hidden_size": 48},
    {"hidden_states": (("batch_size", "hidden_size"), "bfloat16"), "weight": (("hidden_size",), "bfloat16")},
    {"output": (("batch_size", "hidden_size"), "bfloat16")},
    "def run(hidden_states, weight):\n    x = hidden_states.float()\n"
    "    scale = (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt()\n"
    "    return {'output': (x * scale * weight.float()).to(hidden_states.dtype)}\n",
)  # fmt: skip
EMBEDDING = definition(
    "embedding_v50_d16", "embedding", {"batch_size": None, "vocab_size": 50, "embedding_dim": 16},
    {"input_ids": (("batch_size",), "int64"), "weight": (("vocab_size", "embedding_dim"), "float8_e4m3fn")},
    {"output": (("batch_size", "embedding_dim"), "float8_e4m3fn")},
    "import torch\n\ndef run(input_ids, weight):\n    return weight.view(torch.uint8)[input_ids].view(weight.dtype)\n",
)  # fmt: skip
SAMPLING = definition(
    "top_k_top_p_sampling_from_probs_v40", "sampling", {"batch_size": None, "vocab_size": 40},
    {"probs": (("batch_size", "vocab_size"), "float32"), "top_k": (("batch_size",), "int32"),
     "top_p": (("batch_size",), "float32")},
    {"samples": (("batch_size",), "int64")},
    "import torch\n\ndef run(probs, top_k, top_p):\n    values, order = probs.sort(-1, descending=True)\n"
    "    place = torch.arange(probs.shape[1], device=probs.device)\n    values = values * (place < top_k[:, None])\n"
    "    values = values / values.sum(-1, keepdim=True)\n"
    "    values = values * (values.cumsum(-1) - values <= top_p[:, None])\n"
    "    return order.gather(1, torch.multinomial(values, 1))[:, 0]\n",
)  # fmt: skip
DECODE = definition(
    "gqa_paged_decode_h4_kv2_d8_ps1", "gqa_paged",
    {"batch_size": None, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "page_size": 1, "num_pages": None,
     "len_indptr": None, "num_kv_indices": None},
    {"q": (("batch_size", "num_qo_heads", "head_dim"), "bfloat16"),
     "k_cache": (("num_pages", "page_size", "num_kv_heads", "head_dim"), "bfloat16"),
     "v_cache": (("num_pages", "page_size", "num_kv_heads", "head_dim"), "bfloat16"),
     "kv_indptr": (("len_indptr",), "int32"), "kv_indices": (("num_kv_indices",), "int32"),
     "sm_scale": (None, "float32")},
    {"output": (("batch_size", "num_qo_heads", "head_dim"), "bfloat16"),
     "lse": (("batch_size", "num_qo_heads"), "float32")},
    "import math\nimport torch\n\ndef run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):\n"
    "    output = torch.zeros_like(q)\n    lse = torch.full(q.shape[:2], float('-inf'))\n"
    "    for b in range(len(q)):\n        pages = kv_indices[kv_indptr[b] : kv_indptr[b + 1]].long()\n"
    "        if not len(pages):\n            continue\n"
    "        keys, values = (c[pages, 0].float().repeat_interleave(2, 1) for c in (k_cache, v_cache))\n"
    "        scores = torch.einsum('hd,thd->ht', q[b].float(), keys) * sm_scale\n"
    "        lse[b] = scores.logsumexp(-1) / math.log(2)\n"
    "        output[b] = torch.einsum('ht,thd->hd', scores.softmax(-1), values).to(q.dtype)\n    return output, lse\n",
    ["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
)  # fmt: skip
MLA = definition(
    "mla_paged_decode_h4_ckv8_kpe4_ps1", "mla_paged",
    {"batch_size": None, "num_qo_heads": 4, "head_dim_ckv": 8, "head_dim_kpe": 4, "page_size": 1, "num_pages": None,
     "len_indptr": None, "num_kv_indices": None},
    {"q_nope": (("batch_size", "num_qo_heads", "head_dim_ckv"), "bfloat16"),
     "q_pe": (("batch_size", "num_qo_heads", "head_dim_kpe"), "bfloat16"),
     "ckv_cache": (("num_pages", "page_size", "head_dim_ckv"), "bfloat16"),
     "kpe_cache": (("num_pages", "page_size", "head_dim_kpe"), "bfloat16"),
     "kv_indptr": (("len_indptr",), "int32"), "kv_indices": (("num_kv_indices",), "int32"),
     "sm_scale": (None, "float32")},
    {"output": (("batch_size", "num_qo_heads", "head_dim_ckv"), "bfloat16")},
    "import torch\n\ndef run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale):\n"
    "    output = torch.zeros_like(q_nope)\n    for b in range(len(q_nope)):\n"
    "        pages = kv_indices[kv_indptr[b] : kv_indptr[b + 1]].long()\n"
    "        c, p = ckv_cache[pages, 0].float(), kpe_cache[pages, 0].float()\n"
    "        scores = (q_nope[b].float() @ c.T + q_pe[b].float() @ p.T) * sm_scale\n"
    "        output[b] = (scores.softmax(-1) @ c).to(output.dtype)\n    return output\n",
    ["len_indptr == batch_size + 1"],
)  # fmt: skip
MOE = definition(
    "moe_fp8_block_scale_topk2_e4_h16_i8", "moe",
    {"seq_len": None, "num_experts": 4, "top_k": 2, "hidden_size": 16, "intermediate_size": 8, "gate_up": 16},
    {"routing_logits": (("seq_len", "num_experts"), "float32"), "hidden_states": (("seq_len", "hidden_size"), "float8_e4m3fn"),
     "hidden_states_scale": (("seq_len",), "float32"),
     "gemm1_weights": (("num_experts", "gate_up", "hidden_size"), "float8_e4m3fn"),
     "gemm1_weights_scale": (("num_experts",), "float32"),
     "gemm2_weights": (("num_experts", "hidden_size", "intermediate_size"), "float8_e4m3fn"),
     "local_expert_offset": (None, "int32")},
    {"output": (("seq_len", "hidden_size"), "bfloat16")},
    "import torch\n\ndef run(routing_logits, hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale, "
    "gemm2_weights, local_expert_offset):\n    x = hidden_states.float() * hidden_states_scale[:, None]\n"
    "    weights, experts = routing_logits.softmax(-1).topk(2)\n    out = torch.zeros_like(x)\n"
    "    for e in range(4):\n        gate, up = (x @ (gemm1_weights[e].float() * gemm1_weights_scale[e]).T).chunk(2, -1)\n"
    "        y = (torch.nn.functional.silu(gate) * up) @ gemm2_weights[e].float().T\n"
    "        out += y * (weights * (experts == e + local_expert_offset)).sum(-1, keepdim=True)\n"
    "    return out.to(torch.bfloat16)\n",
)  # fmt: skip
GDN = definition(
    "gdn_prefill_qk1_v2_d8_k_last", "gdn",
    {"total_seq_len": None, "num_seqs": None, "num_q_heads": 1, "num_v_heads": 2, "head_size": 8, "len_cu_seqlens": None},
    {"q": (("total_seq_len", "num_q_heads", "head_size"), "bfloat16"), "k": (("total_seq_len", "num_q_heads", "head_size"), "bfloat16"),
     "v": (("total_seq_len", "num_v_heads", "head_size"), "bfloat16"),
     "state?": (("num_seqs", "num_v_heads", "head_size", "head_size"), "float32"),
     "b": (("total_seq_len", "num_v_heads"), "bfloat16"), "cu_seqlens": (("len_cu_seqlens",), "int64"), "scale": (None, "float32")},
    {"output": (("total_seq_len", "num_v_heads", "head_size"), "bfloat16"),
     "new_state": (("num_seqs", "num_v_heads", "head_size", "head_size"), "float32")},
    "import torch\n\ndef run(q, k, v, state, b, cu_seqlens, scale):\n    output = torch.empty_like(v)\n"
    "    count = len(cu_seqlens) - 1\n    new = torch.zeros(count, 2, 8, 8) if state is None else state.clone()\n"
    "    for s in range(count):\n        for t in range(int(cu_seqlens[s]), int(cu_seqlens[s + 1])):\n"
    "            key, query = k[t, 0].float(), q[t, 0].float()\n"
    "            delta = b[t].float().sigmoid()[:, None] * (v[t].float() - new[s] @ key)\n"
    "            new[s] += delta[:, :, None] * key\n            output[t] = (scale * (new[s] @ query)).to(v.dtype)\n"
    "    return output, new\n",
    ["len_cu_seqlens == num_seqs + 1", "total_seq_len == cu_seqlens[-1].item()"],
)  # fmt: skip
INDEXER = definition(
    "dsa_topk_indexer_fp8_h2_d8_topk6_ps4", "dsa_paged",
    {"batch_size": None, "num_index_heads": 2, "index_head_dim": 8, "page_size": 4, "topk": 6, "max_num_pages": None,
     "num_pages": None, "kv_cache_num_heads": 1, "head_dim_with_scale": 12},
    {"q_index_fp8": (("batch_size", "num_index_heads", "index_head_dim"), "float8_e4m3fn"),
     "k_index_cache_fp8": (("num_pages", "page_size", "kv_cache_num_heads", "head_dim_with_scale"), "int8"),
     "weights": (("batch_size", "num_index_heads"), "float32"), "seq_lens": (("batch_size",), "int32"),
     "block_table": (("batch_size", "max_num_pages"), "int32")},
    {"topk_indices": (("batch_size", "topk"), "int32")},
    "import torch\n\ndef run(q_index_fp8, k_index_cache_fp8, weights, seq_lens, block_table):\n"
    "    pages = k_index_cache_fp8.view(torch.uint8).reshape(len(k_index_cache_fp8), -1)\n"
    "    keys = pages[:, :32].contiguous().view(torch.float8_e4m3fn).float().view(-1, 4, 8)\n"
    "    keys = keys * pages[:, 32:].contiguous().view(torch.float32).view(-1, 4, 1)\n"
    "    found = torch.full((len(q_index_fp8), 6), -1, dtype=torch.int32)\n"
    "    for b, length in enumerate(seq_lens.tolist()):\n        table = block_table[b].long()\n"
    "        mine = keys[table].reshape(-1, 8)[:length]\n"
    "        scores = ((q_index_fp8[b].float() @ mine.T).relu() * weights[b][:, None]).sum(0)\n"
    "        best = scores.topk(min(6, length)).indices\n"
    "        found[b, : len(best)] = (table[best // 4] * 4 + best % 4).int()\n    return {'topk_indices': found}\n",
    ["topk <= max_num_pages * page_size"],
)  # fmt: skip

RANDOM: Json = {"type": "random"}
SCALE: Json = {"sm_scale": {"type": "scalar", "value": 0.35}}
WORKLOADS: dict[str, list[tuple[Json, Json]]] = {
    GEMM["name"]: [({"M": 3}, {}), ({"M": 65}, {})],
    NORM["name"]: [({"batch_size": 7}, {})],
    EMBEDDING["name"]: [({"batch_size": 9}, {})],
    SAMPLING["name"]: [({"batch_size": 5}, {})],
    DECODE["name"]: [({"batch_size": 3, "num_pages": 20, "len_indptr": 4, "num_kv_indices": 11}, SCALE)],
    MLA["name"]: [({"batch_size": 2, "num_pages": 20, "len_indptr": 3, "num_kv_indices": 11}, SCALE)],
    MOE["name"]: [({"seq_len": 13}, {"local_expert_offset": {"type": "scalar", "value": 0}})],
    GDN["name"]: [
        ({"total_seq_len": 9, "num_seqs": 2, "len_cu_seqlens": 3}, {"scale": {"type": "scalar", "value": 0.5}}),
    ],
    INDEXER["name"]: [({"batch_size": 3, "max_num_pages": 5, "num_pages": 17}, {})],
}
ALL = (GEMM, NORM, EMBEDDING, SAMPLING, DECODE, MLA, MOE, GDN, INDEXER)


def write_dataset(root: Path, definitions: Sequence[Json] = ALL) -> Path:
    """Its folders `definitions/` and `workloads/`."""
    for each in definitions:
        place = Path(each["op_type"]) / each["name"]
        write(root / "definitions" / f"{place}.json", json.dumps(each))
        lines = [
            json.dumps(workload(each, axes, given, f"0000000{index}")) for index, (axes, given) in
            enumerate(WORKLOADS[each["name"]])
        ]  # fmt: skip
        write(root / "workloads" / f"{place}.jsonl", "\n".join(lines))
    return root


def workload(of: Json, axes: Json, given: Json, uuid: str) -> Json:
    """A line; optional inputs are left out, others are random where nothing is given."""
    inputs = {name: given.get(name, RANDOM) for name, spec in of["inputs"].items() if not spec.get("optional")}
    found = {"axes": axes, "inputs": inputs, "uuid": uuid}
    return {"definition": of["name"], "workload": found, "solution": None, "evaluation": None}


def solution(of: Json, text: str | Mapping[str, str], name: str = "mine", **spec: Any) -> Json:
    """A solution that returns its outputs."""
    sources = {"main.py": text} if isinstance(text, str) else text
    usual = {
        "language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "dependencies": [],
        "destination_passing_style": False,
    }  # fmt: skip
    return {
        "name": name, "definition": of["name"], "author": "tests", "spec": {**usual, **spec},
        "sources": [{"path": path, "content": content} for path, content in sources.items()],
    }  # fmt: skip


def write_solution(root: Path, of: Json, found: Json) -> Path:
    """In its place in the data set."""
    place = root / "solutions" / found["author"] / of["op_type"] / of["name"] / f"{found['name']}.json"
    return write(place, json.dumps(found))


def write(path: Path, text: str) -> Path:
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
