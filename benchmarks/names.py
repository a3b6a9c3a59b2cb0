"""Measures what `inferometer.names` gets right on labelled names, and how fast it is.

    python -m benchmarks.names ../shared/data/kernel_names/labelled.csv
    python -m benchmarks.names tests/names/data/gemm.json tests/names/data/torch.json

A file of labels has the columns name, library, family, dtype, tile_m, tile_n, tile_k, stages, split_k, arch; an empty
cell means that the name doesn't tell, `a|b` that either is right. Beside a CSV, `gpu_time.csv` (name, source, launches,
total_us) weighs names by time: each source weighs 1, inside it each name by its share. Speed: distinct names a second,
nothing remembered between them, the best of several runs. JSON goes to stdout, a summary to stderr.
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

from inferometer.names import canonical, decoding, demangle, words
from inferometer.names.kernel_name import KernelName

_NUMBER = re.compile(r"(?<=[<, ()])[0-9]{1,3}(?=[>,ul ])|(?<=_)[0-9]{1,3}(?=x)")
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
            mistakes.append(f"want {wanted}, found {known.library} {known.family}: {row['name'][:200]}")
        for field in FIELDS:
            found, wanted = getattr(known, field), row[field]
            answered[field] += found is not None
            labelled[field] += wanted != ""
            agreed[field] += found is not None and str(found) in wanted.split("|")
            if wanted != ("" if found is None else str(found)) and str(found) not in wanted.split("|"):
                mistakes.append(f"want {field} {wanted or '-'}, found {found}: {row['name'][:200]}")
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
    """Distinct names a second on one core, in processor time; every cache of ours is empty before each run."""
    best = float("inf")
    decoding.decode("warm_up")
    for _ in range(repetitions):
        for cached in (canonical.canonical_parts, decoding.decode, demangle.demangle, words.find_family):
            cached.cache_clear()
        gc.collect()
        began = time.process_time()
        for name in names:
            decoding.decode(name)
        best = min(best, time.process_time() - began)
    return len(names) / best


def distinct_names(names: Sequence[str], wanted: int) -> list[str]:
    """More names of the same kinds: numbers in them vary, so that no two are alike and none was seen."""
    made = dict.fromkeys(names)
    for step in range(1, 1 + wanted // max(1, len(names))):
        made |= dict.fromkeys(_count_up(name, step) for name in names)
    return list(made)[:wanted]


def _count_up(name: str, step: int) -> str:
    return _NUMBER.sub(lambda number: str(int(number[0]) + step), name)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, nargs="+", help="files of labels, CSV or JSON")
    options = parser.parse_args(arguments)
    rows = [row for path in options.labels for row in read_labels(path)]
    times = [row for path in options.labels for row in _read_times(path.with_name("gpu_time.csv"))]
    found = score(rows, times)
    plain = [row["name"] for row in rows if not row["name"].startswith("_Z")]
    speed = measure_speed(distinct_names(plain, 2_000))
    print(json.dumps({**asdict(found), "names_per_s": round(speed)}, indent=1))
    print(_summary(found, speed), file=sys.stderr)
    return 0


def _summary(found: Score, speed: float) -> str:
    lines = [f"{found.names} names: right {found.right:.3f}, wrong {found.wrong:.3f}; {speed:,.0f} distinct names/s"]
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
