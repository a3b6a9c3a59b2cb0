"""The examples of CONTRIBUTING.md, installed as another package and used: nothing of ours is edited for them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs.pages import find_blocks

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = {block.file: block.body for block in find_blocks((ROOT / "CONTRIBUTING.md").read_text("utf-8")) if block.file}
SAMPLE = str(ROOT / "samples" / "decode.json.gz")
ANALYSIS = "inferometer.analyses.tables.streams"  # of a package, its analysis is a module next to its command

PACKAGE = "src/inferometer"
ADDED = {
    f"{PACKAGE}/formats/kernel_csv.py": ("inferometer.formats", "FORMAT"),
    f"{PACKAGE}/commands/streams.py": ("inferometer.commands", "run"),
    f"{PACKAGE}/findings/rules/launches/repeated_set_up.py": ("inferometer.findings", "RULE"),
    f"{PACKAGE}/operators/catalogue/square.py": ("inferometer.operators", "OPERATOR"),
    f"{PACKAGE}/backends/functional.py": ("inferometer.backends", "BACKEND"),
    f"{PACKAGE}/reports/page/sections/devices.py": ("inferometer.reports.page.sections", "SECTION"),
    f"{PACKAGE}/reports/views/streams.py": ("inferometer.reports.views", "VIEW"),
}
"""Files of the page, and what a package's entry point says of each: group and object."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with one distribution, which has all examples."""
    root = tmp_path_factory.mktemp("site")
    points: dict[str, list[str]] = {}
    for file, (group, constant) in ADDED.items():
        module = f"visiting_{Path(file).parent.name}_{Path(file).stem}"
        (root / f"{module}.py").write_text(BLOCKS[file].replace(ANALYSIS, "visiting_analysis"), "utf-8")
        points.setdefault(group, []).append(f"{Path(file).stem} = {module}:{constant}")
    (root / "visiting_analysis.py").write_text(BLOCKS[f"{PACKAGE}/analyses/tables/streams.py"], "utf-8")
    info = root / "visiting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: visiting\nVersion: 1.0\n")
    lines = [line for group, names in points.items() for line in (f"[{group}]", *names)]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return root


def inferometer(site: Path, *arguments: str) -> str:
    """What a command prints where that package is installed."""
    done = subprocess.run(
        [sys.executable, "-m", "inferometer", *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_of_the_page_is_installed_here() -> None:
    """But for the analysis, which a command brings along, and for tests and inputs."""
    ours = {file for file in BLOCKS if file.startswith(PACKAGE)}
    assert ours - {f"{PACKAGE}/analyses/tables/streams.py"} == set(ADDED)


def test_a_format_reads_its_file(site: Path) -> None:
    (site / "run.csv").write_text(BLOCKS["run.csv"])
    assert inferometer(site, "kernels", "run.csv", "--csv").splitlines()[1].endswith(",gemm")


def test_a_command_answers_by_its_analysis(site: Path) -> None:
    assert inferometer(site, "streams", SAMPLE, "--csv").splitlines()[1].startswith("gpu:0,7,786,")


def test_a_rule_is_asked_with_ours(site: Path) -> None:
    assert "cudaFuncSetAttribute is called 48 times for 25 kernels" in inferometer(site, "findings", SAMPLE)


def test_a_section_stands_behind_the_one_that_it_names(site: Path) -> None:
    inferometer(site, "report", SAMPLE, "-o", "page.html", "--force")
    page = (site / "page.html").read_text("utf-8")
    assert 0 < page.index("Launches by device") < page.index("How to read this page")


def test_an_operator_is_listed_after_those_with_published_shapes(site: Path) -> None:
    assert inferometer(site, "operators", "--csv").splitlines()[-1].startswith("square,0")
    assert "runs 2 small shapes of its own" in inferometer(site, "operators", "square")
    assert '"square"' not in inferometer(site, "leaderboard", "--json")


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra torch")
def test_a_kernel_for_an_operator_is_judged(site: Path) -> None:
    (site / "mine.py").write_text("def square(x):\n    return x * x\n")
    assert "right: 2 of 2 shapes" in inferometer(site, "bench", "square", "--candidate", "mine.py")


def test_a_backend_is_in_the_help(site: Path) -> None:
    assert "functional" in inferometer(site, "bench", "--help")


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra torch")
def test_a_backend_is_compared_with_ours(site: Path) -> None:
    printed = inferometer(site, "bench", "rms_norm", "--backend", "torch,functional", "--json")
    assert '"functional"' in printed
