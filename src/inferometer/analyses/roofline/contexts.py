"""How long the sequences are that a step serves, as sums, from the name of the step.

vLLM, SGLang and ATOM (where they are asked to) name a step by sums over its requests: of new tokens (`sq`, ATOM's
`tok`), of tokens that they see (`sk`, the new ones included), of squares (`sqsq`) and products (`sqsk`) of both. Each
new token sees itself and all before it, so pairs are `sqsk - (sqsq - sq) / 2`, exactly, whatever the lengths are.
"""

import re
from collections.abc import Iterable, Sequence

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree
from inferometer.operators.framework.lengths import Context

_N = r"(\d{1,15})"
_SUMS = rf"\(sq{_N}sk{_N}sqsq{_N}sqsk{_N}\)"
_VLLM = re.compile(rf"execute_\d+_context_\d+{_SUMS}_generation_\d+{_SUMS}")
_SGLANG = re.compile(r"(?:draft )?step\[\w+ bs=\d+([^\]]*)\]")
_FIELD = re.compile(rf"\b([cg])_(sq|sk|sqsq|sqsk)={_N}\b")
_ATOM = re.compile(rf"(prefill|(?:eager_)?decode)\[bs={_N}(?:/{_N})?((?: .*)?)\]")  # requests, and padded to
_ATOM_FIELD = re.compile(rf"(?<= )(tok|sk|sqsq|sqsk)={_N}(?= |$)")
_NAMES = ("sq", "sk", "sqsq", "sqsk")


def read_context(name: str) -> Context | None:
    """The lengths that a step's name says; None where it shows none, or such as can't be."""
    if match := _VLLM.fullmatch(name):
        values = [int(text) for text in match.groups()]
        return _joined([values[:4], values[4:]])
    if match := _SGLANG.fullmatch(name):
        fields = {(group, field): int(text) for group, field, text in _FIELD.findall(match[1])}
        groups = [[fields[group, field] for field in _NAMES if (group, field) in fields] for group in "cg"]
        return _joined([group for group in groups if group])
    if match := _ATOM.fullmatch(name):
        return _of_atom(match[1], int(match[2]), {field: int(text) for field, text in _ATOM_FIELD.findall(match[4])})
    return None


def _of_atom(mode: str, requests: int, fields: dict[str, int]) -> Context | None:
    """All requests together; of a decode with one new token a request, products are the tokens that they see."""
    if mode != "prefill" and fields.get("tok") == requests and not {"sqsq", "sqsk"} & fields.keys():
        fields = {**fields, "sqsq": requests, "sqsk": fields.get("sk", 0)}
    return _joined([[fields[field] for field in ("tok", "sk", "sqsq", "sqsk") if field in fields]])


def _joined(groups: Sequence[Sequence[int]]) -> Context | None:
    """Of the requests that prefill and those that decode together."""
    if not groups or any(len(group) != len(_NAMES) for group in groups):
        return None
    queries, keys, squares, products = (sum(values) for values in zip(*groups, strict=True))
    pairs = products - (squares - queries) // 2
    if not queries or keys < queries or not queries <= pairs <= queries * keys:
        return None
    return Context(queries, keys, pairs)


def contexts_of(tree: CallTree, nodes: Iterable[int]) -> dict[int, Context]:
    """Of each node whose chain has a range that shows lengths: those of the innermost such range."""
    by_name: dict[str, Context | None] = {}
    found: dict[int, Context | None] = {ROOT: None}
    for node in nodes:
        missing = []
        at = node
        while at not in found:
            missing.append(at)
            at = tree.parent[at]
        for each in reversed(missing):
            label = tree.label_of(each)
            own = by_name.setdefault(label.name, read_context(label.name)) if label.kind == "span" else None
            found[each] = own or found[tree.parent[each]]
    return {node: context for node, context in found.items() if context is not None}
