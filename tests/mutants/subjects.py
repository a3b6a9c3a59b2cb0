"""Which modules are mutated, and the tests that should notice: quick ones first, since the first failure ends a run."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Subject:
    """A module and its tests, as paths from the root of the repository."""

    module: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is imported: `inferometer.operators.bounds`."""
        return ".".join(Path(self.module).with_suffix("").parts[1:])

    def source(self) -> str:
        """The module's text."""
        return (ROOT / self.module).read_text("utf-8")


SUBJECTS = (
    Subject("src/inferometer/operators/bounds.py", ("tests/operators/test_bounds.py",)),
    Subject("src/inferometer/bench/comparison.py", ("tests/bench/test_comparison.py",)),
    Subject("src/inferometer/bench/deviation.py", ("tests/bench/test_deviation.py", "tests/bench/test_comparison.py")),
    Subject("src/inferometer/bench/process/timers.py", ("tests/bench/process/test_timers.py",)),
    Subject("src/inferometer/names/grammars/cutlass.py", ("tests/names/test_cutlass.py",)),
    Subject("src/inferometer/names/cutlass_generated.py", ("tests/names/test_cutlass_generated.py",)),
    Subject("src/inferometer/analyses/timeline/timeline.py", ("tests/analyses/timeline/test_timeline.py",)),
    Subject("src/inferometer/analyses/timeline/gaps.py", ("tests/analyses/timeline/test_gaps.py",)),
    Subject("src/inferometer/analyses/correlation.py", ("tests/analyses/test_correlation.py",)),
    Subject("src/inferometer/analyses/compare/causes/causes.py", ("tests/analyses/compare/causes/test_causes.py",)),
    Subject("src/inferometer/trace/combine.py", ("tests/trace/test_combine.py",)),
    Subject("src/inferometer/trace/store.py", ("tests/trace/test_store.py",)),
    Subject("src/inferometer/trace/store_writer.py", ("tests/trace/test_store.py",)),
)
