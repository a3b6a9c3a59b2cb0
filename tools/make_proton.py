"""Writes a `.hatchet` file of Triton's Proton that is synthetic, and exactly known.

    python -m tools.make_proton OUT [--seed N] [--scopes N] [--devices N]

Scopes nest at random; kernels run in any of them, one kernel in several. Every file has what readers trip over: times
that are floats, metrics that aren't times, Python frames, a node without a name, a scope with nothing in it. The truth
is printed as JSON. Times are drawn, not measured.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

_KERNELS: Final = ("matmul_kernel", "_ZN2at6native4normE", "softmax<int, 3>", "<metric>")
_SCOPES: Final = ("step", "attention", "mlp", "/app/model.py:42@forward")


@dataclass
class Truth:
    """`times`: by path of names, from the root, ns and calls of each leaf, in the order of the file.

    `sums`: ns by kernel and device; `calls`: the same of calls. `names`: how many nodes have a name.
    """

    times: list[tuple[tuple[str, ...], int, int]] = field(default_factory=list)
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: int = 0
    unnamed: int = 0


def make_proton(seed: int = 0, scopes: int = 40, devices: int = 2) -> tuple[list[Any], Truth]:
    """The document, and what is in it."""
    rng, truth = Random(seed), Truth()
    root = {"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}, "children": []}
    truth.names = 1
    left = scopes
    open_scopes: list[tuple[dict[str, Any], tuple[str, ...]]] = [(root, ("ROOT",))]
    while left:
        parent, path = rng.choice(open_scopes)
        if rng.random() < 0.1:
            scope: dict[str, Any] = {"frame": {}, "metrics": {}, "children": []}
            truth.unnamed += 1
            below = path
        else:
            name = f"{rng.choice(_SCOPES)}" if rng.random() < 0.5 else f"layer{left}"
            scope = {"frame": {"name": name, "type": "function"}, "metrics": {"flops": 2.5e9}, "children": []}
            truth.names += 1
            below = (*path, name)
        parent["children"].append(scope)
        open_scopes.append((scope, below))
        left -= 1
        for kernel in rng.sample(_KERNELS, rng.randrange(3)):
            scope["children"].append(_leaf(rng, kernel, rng.randrange(devices)))
    _recount(root, ("ROOT",), truth, is_root=True)
    facts = {str(device): {"arch": "90", "num_sms": 132} for device in range(devices)}
    return [root, {"CUDA": facts}], truth


def _leaf(rng: Random, kernel: str, device: int) -> dict[str, Any]:
    ns: int | float = rng.randrange(500, 10**9)
    ns = float(ns) if rng.random() < 0.3 else ns
    metrics = {"time (ns)": ns, "count": rng.randrange(1, 100), "device_id": str(device), "device_type": "CUDA"}
    return {"frame": {"name": kernel, "type": "function"}, "metrics": metrics, "children": []}


def _recount(node: dict[str, Any], path: tuple[str, ...], truth: Truth, *, is_root: bool = False) -> None:
    """Leaves in the order of the file; what is below a node without a name has that of its parent."""
    metrics = node["metrics"]
    if "time (ns)" in metrics and not is_root:
        ns, count, where = int(metrics["time (ns)"]), metrics["count"], f"gpu:{metrics['device_id']}"
        truth.times.append((path, ns, count))
        truth.sums[path[-1], where] += ns
        truth.calls[path[-1], where] += count
        truth.names += 1
    for child in node["children"]:
        name = child["frame"].get("name")
        _recount(child, path if name is None else (*path, name), truth)


def main() -> None:
    """Write one, and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("seed", 0), ("scopes", 40), ("devices", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    document, truth = make_proton(asked.seed, asked.scopes, asked.devices)
    asked.out.write_text(json.dumps(document), "utf-8")
    print(json.dumps({f"{kernel} on {device}": ns for (kernel, device), ns in sorted(truth.sums.items())}, indent=2))


if __name__ == "__main__":
    main()
