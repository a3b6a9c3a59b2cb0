"""Writes what every command prints of every sample and capture, so that two versions can be compared file by file.

    PYTHONPATH=src python tools/golden_run.py OUT                the samples, and shared/data where it is
    PYTHONPATH=src python tools/golden_run.py --compare OLD NEW  exit 1 where a file differs; JSON by its values

OUT gets a file per command, its standard output first, then its messages and its exit code. Outputs are a function of
the input alone: what depends on the day, the version or the place is replaced by a word.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import islice, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "samples"
DATA: Final = ROOT.parent / "shared" / "data"

_SHOWN: Final = 8  # lines of a file that differ

OF_A_TRACE: Final = (
    *(
        "summary",
        "kernels",
        "calls",
        "launches",
        "tree",
        "spans",
        "groups",
        "timeline",
        "steps",
        "findings",
    ),
    *("launches --each", "tree --by module", "launches --by module", "kernels --sort self", "timeline --markdown"),
    *("steps --markdown", "summary --markdown", "findings --markdown", "groups --markdown", "calls --markdown"),
    *("kernels --markdown", "launches --markdown"),
)
OF_NOTHING: Final = (
    "formats",
    "hardware",
    "names ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
    "operators",
)
PAIRS: Final = (
    ("samples/slow/normal", "samples/slow/abnormal"),
    *(
        (f"samples/recorded/{kind}/normal.ifm", f"samples/recorded/{kind}/fault.ifm")
        for kind in ("cpu_contention", "cpu_quota", "cpu_stop", "disk", "none")
    ),
    (
        "data/latencyprism/SGLang/cpu_frequency_reduction/normal",
        "data/latencyprism/SGLang/cpu_frequency_reduction/abnormal",
    ),
    ("data/latencyprism/vLLM/gpu_instability/normal", "data/latencyprism/vLLM/gpu_instability/abnormal"),
    ("data/traces/kineto/h100_qwen1.5-0.5b.json.gz", "data/traces/kineto/mi300_qwen1.5-0.5b.json.gz"),
    ("data/traces/kineto/h100_vit.json.gz", "data/traces/kineto/mi300_vit.json.gz"),
    ("data/traces/kineto/mi300_vllm_gpt-oss_decode.json.gz", "data/traces/kineto/mi300_sglang_qwen3-8b_decode.json.gz"),
    ("data/traces/kineto/rank0_sampled.json.gz", "data/traces/kineto/rank1_sampled.json.gz"),
    ("samples/decode.json.gz", "samples/decode.json.gz"),
    ("data/traces/kineto/v100_graph_branches.json.gz", "data/traces/kineto/v100_graph_branches.json.gz"),
)


def jobs() -> Iterator[tuple[str, list[str]]]:
    """A file name and the words of a command line, for each output."""
    for words in OF_NOTHING:
        yield from _both(words.split(), [])
    for trace in traces():
        for words in OF_A_TRACE:
            yield from _both(words.split(), [str(trace)])
    for base, candidate in PAIRS:
        paths = [str(DATA / path[5:] if path.startswith("data/") else ROOT / path) for path in (base, candidate)]
        if all(Path(path).exists() for path in paths):
            yield from _both(["compare"], paths)
            yield from _both(["compare", "--check"], paths)
            yield from _both(["compare", "--markdown"], paths)


def traces() -> list[Path]:
    """Samples and captures that open as one trace."""
    samples = [path for path in sorted(SAMPLES.iterdir()) if path.is_file() and path.suffix != ".md"]
    stores = [SAMPLES / "recorded" / "cpu_quota" / "fault.ifm", SAMPLES / "slow" / "abnormal"]
    captures = sorted((DATA / "traces").rglob("*.json.gz"))
    tables = [DATA / "latencyprism" / "SGLang" / "cpu_frequency_reduction" / "abnormal"]
    seeds = sorted((DATA.parent / "seeds").glob("*.txt"))
    return [path for path in (*samples, *stores, *captures, *tables, *seeds) if path.exists()]


def _both(words: list[str], paths: list[str]) -> Iterator[tuple[str, list[str]]]:
    name = re.sub(r"[^\w.=-]+", "_", "_".join([*words, *(_short(path) for path in paths)]))[:180]
    yield f"{name}.txt", [*words, *paths]
    if "--markdown" not in words:
        yield f"{name}.json", [*words, "--json", *paths]


def _short(path: str) -> str:
    return str(Path(path).relative_to(ROOT if path.startswith(str(ROOT)) else DATA.parent))


def run(job: tuple[str, list[str], str]) -> str:
    """Run one command in this process and write what it printed."""
    name, words, out = job
    from inferometer.commands.main import main

    printed, messages = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    code: Any = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(messages):
        try:
            main(words)
        except SystemExit as end:
            code = end.code
    texts = []
    for stream in (printed, messages):
        stream.flush()
        texts.append(_plain(stream.buffer.getvalue().decode("utf-8", "replace")))  # type: ignore[attr-defined]
    Path(out, name).write_text(f"{texts[0]}\n----- exit {code}\n{texts[1]}", "utf-8")
    return name


def _plain(text: str) -> str:
    text = text.replace(str(ROOT), "ROOT").replace(str(DATA.parent), "SHARED")
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d)?", "TIME", text)


def write(out: Path, workers: int) -> int:
    """Run all commands, each in one of `workers` processes that have the package imported."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.environ |= {"COLUMNS": "160", "NO_COLOR": "1"}
    asked = [(name, words, str(out)) for name, words in jobs()]
    with get_context("spawn").Pool(workers, maxtasksperchild=40) as pool:
        for done, _ in enumerate(pool.imap_unordered(run, asked, chunksize=4), start=1):
            print(f"\r{done} of {len(asked)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return 0


def compare(old: Path, new: Path) -> int:
    """Print how the files of two folders differ; 1 if they do."""
    names = sorted({path.name for folder in (old, new) for path in folder.iterdir()})
    different = 0
    for name in names:
        texts = [(folder / name).read_text("utf-8") if (folder / name).exists() else None for folder in (old, new)]
        if texts[0] is None or texts[1] is None:
            print(f"== {name}: only in {old if texts[1] is None else new}")
            different += 1
        elif texts[0] != texts[1] and not _alike(_values(texts[0]), _values(texts[1])):
            print(f"== {name}", *(f"- {old[:300]}\n+ {new[:300]}" for old, new in _first_pairs(*texts)), sep="\n")
            different += 1
    print(f"{different} of {len(names)} outputs differ")
    return 1 if different else 0


def _first_pairs(old: str, new: str) -> list[tuple[str, str]]:
    pairs = zip_longest(old.splitlines(), new.splitlines(), fillvalue="")
    return list(islice(((a, b) for a, b in pairs if a != b), _SHOWN))


def _alike(old: object, new: object) -> bool:
    """Equal, but for the last digits of a float: sums of floats depend on how threads share the rows."""
    match old, new:
        case dict(), dict():
            return [*old] == [*new] and all(_alike(old[key], new[key]) for key in old)
        case ((list() | tuple()), (list() | tuple())):
            return len(old) == len(new) and all(map(_alike, old, new))
        case float(), float():
            return math.isclose(old, new, rel_tol=1e-9)
    return old == new


def _values(text: str) -> object:
    printed, _, rest = text.partition("\n----- exit ")
    try:
        return json.loads(printed), rest
    except ValueError:
        return text


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    return compare(*asked.folders) if asked.compare else write(asked.folders[0].resolve(), asked.workers)


if __name__ == "__main__":
    sys.exit(main())
