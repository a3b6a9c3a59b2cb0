"""Does the observer see what the dispatch mode sees: the same ops of tiny models, called alike, from the same places?

    python -m benchmarks.ops_seen
    python -m benchmarks.ops_seen --models tiny-llama,gpt2 --passes no_grad

Each model runs the same pass twice, once recorded by either way, after one that isn't recorded. Compared are, in order:
each op with its shapes, types, strides and scalars; each launch with its module and the user's innermost function; each
call of a module. Exit 1 where anything differs. The models are those of `inferometer/engines/models` and small forms of
other families of transformers, with random weights.

Passes are forward. In backward the two can't be equal: a dispatch mode changes what PyTorch runs there (what is saved
is detached by an op, gradients aren't summed in place, some formulas are others). Needs the extra `torch`; not part of
CI, which compares fewer models (tests/benchmarks/test_ops_seen.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.names.module_paths import module_of_range
from inferometer.trace.store import read_store

OWN_MODELS = Path(inferometer.__file__).parent / "engines" / "models"
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 320,
}
OTHERS: dict[str, dict[str, Any]] = {  # of transformers: sizes by the names that each family has for them
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 320},
    "gpt_neox": SIZES,
    "bert": SIZES,
    "t5": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 320},
    "mamba": {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "vocab_size": 320},
    "vit": {**SIZES, "image_size": 32, "patch_size": 8},
}
PASSES = ("inference", "no_grad")
COLUMNS = ("op", "input_dims", "input_dtypes", "input_strides", "scalars")

OpsBy = Literal["observer", "mode"]
WAYS: tuple[OpsBy, OpsBy] = ("mode", "observer")


@dataclass(frozen=True)
class Seen:
    """What one way saw of a pass, in order."""

    ops: list[tuple[Any, ...]]
    launches: list[tuple[Any, ...]]
    modules: list[str | None]


def model_names() -> list[str]:
    """Ours and the others."""
    return [*(f"{path.stem.replace('_', '-')}" for path in sorted(OWN_MODELS.glob("*.json"))), *OTHERS]


def make_model(name: str) -> tuple[Any, dict[str, Any]]:
    """A model with random weights, and what it is called with."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    torch.manual_seed(0)
    if name in OTHERS:
        config = AutoConfig.for_model(name, **OTHERS[name])
    else:
        config = AutoConfig.for_model(
            **json.loads((OWN_MODELS / f"{name.replace('-', '_')}.json").read_text())["config"]
        )
    makers = {"t5": AutoModelForSeq2SeqLM, "vit": AutoModel, "bert": AutoModel}
    model = makers.get(name, AutoModelForCausalLM).from_config(config).eval()
    if name == "vit":
        return model, {"pixel_values": torch.randn(1, 3, 32, 32)}
    tokens = torch.randint(0, 250, (2, 9))
    return model, {"input_ids": tokens, **({"decoder_input_ids": tokens} if name == "t5" else {})}


def make_pass(name: str, kind: str) -> Callable[[], None]:
    """One pass of a model, which can be run again."""
    import torch

    model, given = make_model(name)
    modes = {"inference": torch.inference_mode, "no_grad": torch.no_grad}

    def run() -> None:
        with modes[kind]():
            model(**given)

    run()
    return run


def see(run: Callable[[], None], ops_by: OpsBy, folder: Path) -> Seen:
    """Record `run` in one way."""
    store = folder / "run.ifm"
    asked = {"counters": False, "profile": False, "workers": False, "force": True}
    with inferometer.record(store, **asked, ops_by=ops_by) as recording:
        run()
    if recording.remarks:
        raise SystemExit(f"not recorded as asked: {recording.remarks}")
    with read_store(store) as trace:
        ops = trace.ops.sort("start_ns").select(COLUMNS).collect()
        launches = attribute(trace).each().select("kernel", "module", "user_frame")
        spans = trace.spans.filter(pl.col("domain") == "modules").sort("start_ns").select("span").collect()
        modules = [module_of_range(span) for span in spans["span"]]
    return Seen(ops.rows(), launches.rows(), modules)


def differences(mode: Seen, observer: Seen) -> Iterator[str]:
    """What differs, in the order in which it is worth reading: the first of each kind."""
    for what in ("ops", "launches", "modules"):
        ours, theirs = getattr(observer, what), getattr(mode, what)
        if ours != theirs:
            at = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
            place = min(len(ours), len(theirs)) if at is None else at
            mine, other = (rows[place] if place < len(rows) else "nothing" for rows in (ours, theirs))
            yield f"{what} {place} of {len(theirs)}: the mode has {other}, the observer {mine}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(model_names()))
    parser.add_argument("--passes", default=",".join(PASSES))
    given = parser.parse_args()
    failed = 0
    for name in given.models.split(","):
        for kind in given.passes.split(","):
            run = make_pass(name, kind)
            with tempfile.TemporaryDirectory() as folder:
                mode, observer = (see(run, way, Path(folder)) for way in WAYS)
            found = list(differences(mode, observer))
            failed += bool(found)
            counts = f"{len(mode.ops):5,} ops, {len(mode.launches):5,} launches, {len(mode.modules):4,} modules"
            print(f"{name:18} {kind:10} {counts}: {'; '.join(found) or 'equal'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
