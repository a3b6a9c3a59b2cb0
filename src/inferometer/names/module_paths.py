"""Attribute paths of modules (`model.layers.17.self_attn.qkv_proj`), from the tree of their calls.

PyTorch's profiler records a call of a module as `nn.Module: Linear_119`: its class, and a number in the order in which
the instances of this class were first called. Attribute names are not in the file. `module_names.py` infers them from
the class of the parent and the order of the calls, as published model code has them. Layerwise NVTX ranges hold the
real path, and `module_of_range` reads it.

Left out: what runs without a module call (functions, fused or compiled layers) has no node, so no path.
"""

import ast
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from inferometer.names.module_names import Segment, child_segments, is_model, is_wrapper, root_segment
from inferometer.patterns import late_re

_RANGE = late_re(r"\s*\{\s*['\"]Module['\"]\s*:\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*[,}]")
_INSIDE_MODEL = frozenset({"layers", "embed_tokens", "norm", "rotary_emb", "decoder", "encoder", "h", "blocks"})
_LONGEST = 4_096  # characters of a path that those below it keep: nesting without end makes no text without end
_MODEL = Segment("", "")  # of a whole model's root, whose children begin the path
_WRAPPED = Segment("", "")  # of what a wrapper wraps, which has the wrapper's path


class ModulePath(msgspec.Struct, frozen=True, gc=False):
    """Where a module is in its model.

    `path` has the names of attributes, from the model down; where no convention shows one, the recorded name
    (`FooBar_3`) stands in. `pooled` has `*` for an index in a repeated container and for the number of a class of
    which the trace has several; names and numbers that show a role stay. `is_known`: no recorded name stands in.
    `is_index_known`: every index surely counts from the first child; else it counts the children that were called.
    """

    path: str
    pooled: str
    is_known: bool
    is_index_known: bool = True


_NOWHERE = ModulePath("", "", is_known=True)


def module_paths(parents: Sequence[int], recorded: Sequence[str]) -> list[ModulePath]:
    """One path a node, those of siblings all different, by the conventions of published models.

    The root of a whole model (`Qwen3ForCausalLM_0`) has no segment: its own path is its class, its children's begin
    with `model`. A root that is a part (`Qwen3Model_0`) has the name that it has in the whole. Of several roots that
    would share paths (a draft model next to its target) the largest takes them, the others begin with the recorded
    name. A wrapper (`torch.compile`) and what it wraps share one path.

    An index counts siblings by their first call. Where the trace begins inside a pass and holds a later one, the order
    wraps around. That shows, and is undone, where children of the nodes open at the start were called only after these
    had ended, or where layers follow the final norm or the embedding. What doesn't show: a window from one layer to a
    later one within a pass looks like a model of fewer layers, and layers that were skipped, reused or compiled, or
    experts that no token went to, leave no gap. So `is_index_known` is false where no call before the first layer
    was recorded (also with embeddings from outside, or in a later stage of a pipeline), and for experts.

    Args:
        parents: Index of each node's parent, smaller than its own; -1 for a root. Nodes are in the order of first call.
        recorded: What the profiler named each, without `nn.Module: `. One instance may be a node under many parents.

    Raises:
        ValueError: The lengths differ, or a node does not stand behind its parent.
    """
    tree = _Tree(parents, recorded)
    tree.undo_wrapping_around()
    found = [_NOWHERE] * len(recorded)
    models: set[int] = set()  # nodes that have no segment in their children's paths
    for root, segment in _root_segments(tree).items():
        if segment is _MODEL:
            models.add(root)
            found[root] = ModulePath(tree.classes[root], tree.classes[root], is_known=True)
        else:
            found[root] = _named(segment, _NOWHERE, ("", "")) if segment else _unnamed(tree, root, _NOWHERE, ("", ""))
    for node, children in enumerate(tree.children):
        if not children:
            continue
        above = found[node]
        under = ("", "") if node in models else (f"{above.path[:_LONGEST]}.", f"{above.pooled[:_LONGEST]}.")
        for child, segment in zip(children, tree.child_segments(node), strict=True):
            if segment is None:
                found[child] = _unnamed(tree, child, above, under)
            elif segment is _WRAPPED:
                found[child] = above
                models.update({child} if node in models else ())
            else:
                found[child] = _named(segment, above, under)
    return found


def module_of_range(text: str) -> str | None:
    """The path in a layerwise NVTX range, without the part that stands for the model; null for any other text.

    vLLM and SGLang write a Python dict that begins `{'Module': 'Qwen3ForCausalLM.model.layers.0.mlp', …`: a path of
    `named_modules` after a prefix. vLLM's is the model's class, SGLang's `model`, and `top` where none was given.
    The model itself has the prefix alone, and keeps it. Sources: `module_fwd_pre_hook` of
    vllm/utils/nvtx_pytorch_hooks.py and sglang/srt/utils/nvtx_pytorch_hooks.py.
    """
    found = _RANGE.match(text)
    if found is None:
        return None
    try:
        path = str(ast.literal_eval(found[1]))
    except (SyntaxError, ValueError):
        return None
    first, _, rest = path.partition(".")
    is_prefix = first == "top" or first[:1].isupper() or (first == "model" and rest.split(".")[0] not in _INSIDE_MODEL)
    return (rest if rest and is_prefix else path) or None


class _Tree:
    """The nodes by their parents; `classes` has for a wrapper what it wraps, `several` those with several instances."""

    def __init__(self, parents: Sequence[int], recorded: Sequence[str]) -> None:
        if len(parents) != len(recorded):
            raise ValueError(f"{len(parents)} parents for {len(recorded)} modules")
        self.parents, self.recorded = parents, recorded
        class_of = {name: _class_of(name) for name in set(recorded)}
        self.own_classes = [class_of[name] for name in recorded]
        self.children: list[list[int]] = [[] for _ in recorded]
        self.roots: list[int] = []
        for node, parent in enumerate(parents):
            if not -1 <= parent < node:
                raise ValueError(f"module {node} has the parent {parent}: expected one before it, or -1")
            (self.children[parent] if parent >= 0 else self.roots).append(node)
        self.several = {kind for kind, count in Counter(class_of.values()).items() if count > 1}
        self.wrappers = {kind for kind in set(self.own_classes) if is_wrapper(kind)}
        self.classes = list(self.own_classes)
        for node in range(len(parents) - 1, -1, -1) if self.wrappers else ():
            if self.wraps(node):
                self.classes[node] = self.classes[self.children[node][0]]

    def wraps(self, node: int) -> bool:
        return self.own_classes[node] in self.wrappers and bool(self.children[node])

    def child_segments(self, node: int) -> tuple[Segment | None, ...]:
        children = self.children[node]
        if self.wraps(node):
            return (_WRAPPED, *(None for _ in children[1:]))
        return child_segments(self.classes[node], tuple([self.classes[child] for child in children]))

    def undo_wrapping_around(self) -> None:
        """Moves children of the first nodes, which were open when the trace began, to where they are in a whole pass.

        Nodes come in the order of first call. What a node first called after it had ended belongs to a later pass,
        and so before what it called in the first, which began in its midst. Where the node's next sibling of its class
        has such children, too, they are modules that only some passes use, and stay.
        """
        opened = self._first_path()
        for node, end in zip(opened, self._ends(opened), strict=True):
            children = self.children[node]
            late = [child for child in children if child > end]
            if late and not self._sibling_calls_late(node, {self.classes[child] for child in late}):
                self.children[node] = late + children[: len(children) - len(late)]

    def _first_path(self) -> list[int]:
        """The first node, its first child, and so on."""
        path = [0] if self.recorded else []
        while path and self.children[path[-1]]:
            path.append(self.children[path[-1]][0])
        return path

    def _ends(self, opened: Sequence[int]) -> list[int]:
        """For each node of the first path, the first node that isn't below it."""
        depth = {node: level for level, node in enumerate(opened)}
        beyond = [len(self.parents)] * (len(opened) + 1)  # by the depth down to which a node shares the path
        shared: list[int] = []
        for node, parent in enumerate(self.parents):
            level = depth.get(node, shared[parent] if parent >= 0 else -1)
            shared.append(level)
            if node not in depth and node < beyond[level + 1]:
                beyond[level + 1] = node
        return list(accumulate(beyond[:-1], min))

    def _sibling_calls_late(self, node: int, classes: set[str]) -> bool:
        parent = self.parents[node]
        siblings = self.children[parent] if parent >= 0 else self.roots
        other = next((one for one in siblings if one > node and self.classes[one] == self.classes[node]), None)
        if other is None:
            return False
        inside, end = {other}, other + 1
        while end < len(self.parents) and self.parents[end] in inside:
            inside.add(end)
            end += 1
        return any(child > end and self.classes[child] in classes for child in self.children[other])


def _class_of(recorded: str) -> str:
    name, _, number = recorded.rpartition("_")
    return name if name and number.isdecimal() else recorded


def _root_segments(tree: _Tree) -> dict[int, Segment | None]:
    """What stands for each root; where several would share paths, the recorded name stands for all but the largest."""
    sizes = [1] * len(tree.parents)
    for node in range(len(sizes) - 1, -1, -1):
        if tree.parents[node] >= 0:
            sizes[tree.parents[node]] += sizes[node]
    owners: dict[str, str] = {}
    found: dict[int, Segment | None] = {}
    for root in sorted(tree.roots, key=lambda root: -sizes[root]):
        segment = _MODEL if is_model(tree.classes[root]) else root_segment(tree.classes[root])
        claims = _claims(tree, root, segment)
        is_free = all(owners.get(text, owner) == owner for text, owner in claims.items())
        found[root] = segment if is_free else None
        if is_free:
            owners.update(claims)
    return found


def _claims(tree: _Tree, root: int, segment: Segment | None) -> dict[str, str]:
    """The first segments of the paths below a root, with the module of each."""
    if segment is not _MODEL:
        return {segment.text: tree.recorded[root]} if segment else {}
    while tree.wraps(root):
        root = tree.children[root][0]
    named = zip(tree.children[root], tree.child_segments(root), strict=True)
    return {tree.classes[root]: tree.recorded[root]} | {
        known.text: tree.recorded[child] for child, known in named if known
    }


def _named(segment: Segment, above: ModulePath, under: tuple[str, str]) -> ModulePath:
    """The path of a node below another, whose children's paths begin with `under`."""
    sure = above.is_index_known and segment.is_index_known
    return ModulePath(under[0] + segment.text, under[1] + segment.pooled, above.is_known, sure)


def _unnamed(tree: _Tree, node: int, above: ModulePath, under: tuple[str, str]) -> ModulePath:
    name, kind = tree.recorded[node], tree.own_classes[node]
    pooled = f"{kind}_*" if kind in tree.several else name
    return ModulePath(under[0] + name, under[1] + pooled, is_known=False, is_index_known=above.is_index_known)
