"""Who communicates, by callers: the collective that an op or range names, and launches that only serve one.

A kernel's name may show nothing: older NCCL starts many collectives through one `ncclKernel_SendRecv`, RCCL all of
them through one generic kernel. The op that called it (`c10d::alltoall_base_`) and the range around it
(`nccl:all_reduce`) say what it is. Copies and casts below such a call stage what is exchanged: they belong to it.

Sources: PyTorch's `c10d`, `_c10d_functional` and `symm_mem` ops, its reducer for data parallelism, the ranges of
ProcessGroupNCCL; functions of vLLM, SGLang, Megatron and TensorRT-LLM that are called after their collective.
"""

import re

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.timeline.collectives import recorded_collectives
from inferometer.findings.evidence.kernel_rows import Bools, Ints
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.names.communication import read_collective
from inferometer.trace.tables import COLLECTIVE_KEY

_CALL = re.compile(r"(?:nccl:|rccl:|c10d::|_?c10d_functional::|symm_mem::)")
_SERVES = re.compile(
    r"(?:nccl:|rccl:|c10d::|_?c10d_functional::|symm_mem::|record_param_comms|torch\.distributed\.ddp\.reducer)"
    r"|.*(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|copy_bucket_to_grad|copy_grad_to_bucket)",
    re.IGNORECASE,
)


def known_collectives(launches: LaunchEvidence) -> pl.DataFrame:
    """What is recorded of collectives, and the names that callers give those of which nothing is.

    Columns of the table `collectives`; of a caller's, all but the name is null.
    """
    recorded = recorded_collectives(launches.trace)
    work = launches.device_work.launches
    kernels = work.filter(pl.col("sort") == "communication")["kernel"].unique()
    called = launches.work.select(*COLLECTIVE_KEY, "node").filter(pl.col("kernel").is_in(kernels.implode()))
    called = called.with_columns(pl.col("kernel", "device").cast(pl.String))
    called = called.join(recorded, on=COLLECTIVE_KEY, how="anti", nulls_equal=True)
    nodes = called["node"].unique().to_list()
    names = [_called(launches.attribution.tree, node) for node in nodes]
    node, name = pl.Series("node", nodes, called.schema["node"]), pl.Series("collective", names, pl.String)
    by_caller = pl.DataFrame([node, name])
    known = called.join(by_caller.drop_nulls(), on="node").drop("node")
    once = known.unique(COLLECTIVE_KEY, keep="none", maintain_order=True)
    return pl.concat([recorded, once], how="diagonal")


def _called(tree: CallTree, node: int) -> str | None:
    """The innermost caller that names a collective."""
    for link in reversed(tree.chain(node)):
        label = tree.label_of(link)
        if label.kind in ("op", "span") and _CALL.match(label.name) and read_collective(label.name) != "other":
            return label.name
    return None


def serves(launches: LaunchEvidence, nodes: Ints) -> Bools:
    """Whether each of these nodes of the tree of callers lies in a call that communicates."""
    tree = launches.attribution.tree
    own = np.array([_says_so(label) for label in tree.labels], dtype=np.bool_)
    if not own.any():
        return np.zeros(len(nodes), dtype=np.bool_)
    found = np.zeros(len(tree) + 1, dtype=np.bool_)  # the root's is the last
    for node, (parent, label) in enumerate(zip(tree.parent, tree.label, strict=True)):  # callers come first
        found[node] = own[label] or (parent != ROOT and found[parent])
    return np.asarray(found[nodes], dtype=np.bool_)


def _says_so(label: Label) -> bool:
    """A frame is recognised by its function, since a file may be called after what it serves."""
    if label.kind == "frame":
        return bool(_SERVES.match(label.name.rpartition(": ")[2]))
    return label.kind in ("op", "span") and bool(_SERVES.match(label.name))
