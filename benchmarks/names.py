"""Measures what `inferometer.names` gets right on labelled names, and how fast it is.

    python -m benchmarks.names ../shared/data/kernel_names/labelled.csv
    python -m benchmarks.names tests/names/data/gemm.json tests/names/data/torch.json

A file of labels has the columns name, library, family, dtype, tile_m, tile_n, tile_k, stages, split_k, arch; an empty
cell means that the name doesn't tell, `a|b` that either is right. Beside a CSV, `gpu_time.csv` (name, source, launches,
total_us) weighs names by time: each source weighs 1, inside it each name by its share. JSON goes to stdout, a summary
to stderr.

Speed is distinct names a second on one core: nothing is remembered from run to run, the best of several counts. Names
of one run share their parts, as those of a trace do. `names_per_s`: the labelled names, and more of the same kinds with
other numbers; `cold_names_per_s`: each labelled name once; `mangled_names_per_s`: mangled names, demangling included,
those of a file of one name a line (`--mangled`, such as the kernels that `strings` finds in a library), else the
labelled ones and more of the same kinds.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from inferometer.names import decoding
from inferometer.names.kernel_name import KernelName

_NUMBER = re.compile(r"(?<=[<, ()])[0-9]{1,3}(?=[>,ul ])|(?<=_)[0-9]{1,3}(?=x)")
_MANGLED_NUMBER = re.compile(r"(?<=L[bijlmtxy])[0-9]{1,3}(?=E)")
FIELDS = ("dtype", "tile_m", "tile_n", "tile_k", "stages", "split_k", "arch")


@dataclass(frozen=True)
class Score:
    """Shares of names. `wrong` are answers that claim something else; the rest of `right` is unknown.

    `time_*` are None without times; precision and recall are of the fields' cells.
    """

    names: int
    right: float
    wrong: float
    time_right: float | None
    time_wrong: float | None
    precision: dict[str, float]
    recall: dict[str, float]
    mistakes: list[str]


def read_labels(path: Path) -> list[dict[str, str]]:
    """The rows of a file of labels; cells that aren't there are empty."""
    if path.suffix == ".json":
        rows = json.loads(path.read_text("utf-8"))["names"]
    else:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    return [dict.fromkeys(FIELDS, "") | row for row in rows]


def score(rows: Sequence[dict[str, str]], times: Iterable[dict[str, str]] = ()) -> Score:
    """How the decoder does on labelled names."""
    verdicts = {row["name"]: judge(row, decoding.decode(row["name"])) for row in rows}
    answered, labelled, agreed = Counter[str](), Counter[str](), Counter[str]()
    mistakes = []
    for row in rows:
        known = decoding.decode(row["name"])
        if verdicts[row["name"]] != "right":
            wanted = f"{row['library']} {row['family']}"
            mistakes.append(f"expected {wanted}, found {known.library} {known.family}: {row['name'][:200]}")
        for field in FIELDS:
            found, wanted = getattr(known, field), row[field]
            answered[field] += found is not None
            labelled[field] += wanted != ""
            agreed[field] += found is not None and str(found) in wanted.split("|")
            if wanted != ("" if found is None else str(found)) and str(found) not in wanted.split("|"):
                mistakes.append(f"expected {field} {wanted or '-'}, found {found}: {row['name'][:200]}")
    shares = _time_shares(verdicts, times)
    return Score(
        names=len(rows),
        right=_share(verdicts.values(), "right"),
        wrong=_share(verdicts.values(), "wrong"),
        time_right=shares.get("right", 0.0) if shares else None,
        time_wrong=shares.get("wrong", 0.0) if shares else None,
        precision={field: agreed[field] / answered[field] for field in FIELDS if answered[field]},
        recall={field: agreed[field] / labelled[field] for field in FIELDS if labelled[field]},
        mistakes=mistakes,
    )


def judge(row: dict[str, str], known: KernelName) -> str:
    """`right` when library and family both are, `unknown` when what isn't right is `other`, else `wrong`."""
    parts = [(known.library, row["library"].split("|")), (known.family, row["family"].split("|"))]
    missed = [found for found, wanted in parts if found not in wanted]
    if not missed:
        return "right"
    return "unknown" if all(found == "other" for found in missed) else "wrong"


def measure_speed(names: Sequence[str], repetitions: int = 9) -> float:
    """Distinct names a second on one core, in processor time; whatever is remembered of names is forgotten before."""
    best = float("inf")
    for name in names[:100]:
        decoding.decode(name)
    for _ in range(repetitions):
        forget_names()
        gc.collect()
        began = time.process_time()
        for name in names:
            decoding.decode(name)
        best = min(best, time.process_time() - began)
    return len(names) / best


def forget_names() -> None:
    """Empties every bounded cache of the package: those hold names and their parts, the unbounded ones hold tables."""
    for module in [module for name, module in sys.modules.items() if name.startswith("inferometer.names.")]:
        for value in vars(module).values():
            if hasattr(value, "cache_parameters") and value.cache_parameters()["maxsize"] is not None:
                value.cache_clear()


def distinct_names(names: Sequence[str], wanted: int) -> list[str]:
    """More names of the same kinds: numbers in them vary, so that no two are alike and none was seen."""
    made = dict.fromkeys(names)
    for step in range(1, 1 + wanted // max(1, len(names))):
        made |= dict.fromkeys(_count_up(name, step) for name in names)
    return list(made)[:wanted]


def _count_up(name: str, step: int) -> str:
    pattern = _MANGLED_NUMBER if name.startswith("_Z") else _NUMBER
    return pattern.sub(lambda number: str(int(number[0]) + step), name)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, nargs="+", help="files of labels, CSV or JSON")
    parser.add_argument(
        "--mangled", type=Path, help="mangled names, one per line, to measure the speed with demangling"
    )
    options = parser.parse_args(arguments)
    rows = [row for path in options.labels for row in read_labels(path)]
    times = [row for path in options.labels for row in _read_times(path.with_name("gpu_time.csv"))]
    found = score(rows, times)
    speeds = _speeds(list(dict.fromkeys(row["name"] for row in rows)), options.mangled)
    print(json.dumps(asdict(found) | speeds, indent=1))
    print(_summary(found, speeds), file=sys.stderr)
    return 0


def _speeds(names: Sequence[str], mangled_file: Path | None) -> dict[str, int | None]:
    plain = [name for name in names if not name.startswith("_Z")]
    mangled = distinct_names([name for name in names if name.startswith("_Z")], 2_000)
    if mangled_file is not None:
        mangled = list(dict.fromkeys(mangled_file.read_text("utf-8").split()))
    measured = {"names_per_s": distinct_names(plain, 2_000), "cold_names_per_s": plain, "mangled_names_per_s": mangled}
    return {what: round(measure_speed(some)) if some else None for what, some in measured.items()}


def _summary(found: Score, speeds: dict[str, int | None]) -> str:
    lines = [f"{found.names} names: right {found.right:.3f}, wrong {found.wrong:.3f}"]
    lines.extend(f"{what}: {speed:,}" for what, speed in speeds.items() if speed is not None)
    if found.time_right is not None and found.time_wrong is not None:
        lines.append(f"GPU time: right {found.time_right:.3f}, wrong {found.time_wrong:.3f}")
    lines.extend(
        f"{field}: precision {found.precision.get(field, 0):.3f}, recall {found.recall[field]:.3f}"
        for field in FIELDS
        if field in found.recall
    )
    return "\n".join(lines)


def _share(verdicts: Iterable[str], wanted: str) -> float:
    found = list(verdicts)
    return sum(verdict == wanted for verdict in found) / len(found)


def _time_shares(verdicts: dict[str, str], times: Iterable[dict[str, str]]) -> dict[str, float]:
    sources: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in times:
        if row["name"] in verdicts:
            sources[row["source"]][verdicts[row["name"]]] += float(row["total_us"])
    shares: defaultdict[str, float] = defaultdict(float)
    for spent in sources.values():
        for verdict, total in spent.items():
            shares[verdict] += total / sum(spent.values()) / len(sources)
    return dict(shares)


def _read_times(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


if __name__ == "__main__":
    raise SystemExit(main())
