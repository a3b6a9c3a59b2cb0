"""`kernels`, `summary` and `import` on a file of printed tables, as users call them."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run

TEXT = """\
Time\tTotal Time\tInstances\tName
75.0%\t3.000 ms\t192\t_Z4gemmv
25.0%\t1.000 ms\t3\tnorm_k

PATH: src/norm.cu
norm_k 总是最后

Name\tTotal Time\tInstances\tMax
clamp\t42.368 μs\t30\t3 μs
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "table.txt"
    path.write_text(TEXT, "utf-8")
    return path


def test_kernels_shows_every_section_under_its_name(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("kernels", file, capsys=capsys)
    assert (code, err) == (0, "")
    tables = out.split("Kernels, section ")
    assert ["StdDev" in table for table in tables] == [False] * 3
    assert "gemm " in tables[1]
    assert ("Max" in tables[1], "Max" in tables[2]) == (False, True)
    assert "sums as the source printed them" in out
    _, markdown, _ = run("kernels", file, "--markdown", "--raw", "--section", "0", capsys=capsys)
    assert markdown.startswith(
        "### Kernels\n\n| Time | Total Time | Instances | Name |\n|---:|---:|---:|---|\n| 75.0 % |"
    )
    assert r"\_Z4gemmv" in markdown


def test_csv_prints_the_first_section_and_says_so_beside(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run("kernels", file, "--csv", capsys=capsys)
    assert [line.rsplit(",", 1)[1] for line in out.splitlines()] == ["Name", "gemm()", "norm_k"]
    assert err == "Only section 0 is printed; --section gives the others: 1.\n"
    _, out, err = run("kernels", file, "--tsv", "--section", "1", capsys=capsys)
    assert (out.splitlines()[1], err) == ("100.0\t42368\t30\t\t\t\t3000\t\tclamp", "")


def test_json_has_all_sections_apart(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("kernels", file, "--json", "--top", "1", capsys=capsys)
    data = json.loads(out)
    assert (data["basis"], data["section"], data["total_ns"], data["shown_ns"]) == ("totals", 0, 4_000_000, 3_000_000)
    assert data["rows"] == [
        {
            "kernel": "gemm()",
            "share": 0.75,
            "total_ns": 3_000_000,
            "count": 192,
            "mean_ns": None,
            "median_ns": None,
            "min_ns": None,
            "max_ns": None,
            "stddev_ns": None,
            "resolution_ns": 500.0,
            "short": "gemm",
        }
    ]
    assert [(each["section"], each["total_ns"]) for each in data["other_sections"]] == [(1, 42_368)]
    assert data["losses"]["scope"] == ["launches", "totals"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--device", "0"], "by device, found only sums"),
        (["--stream", "7"], "by stream, found only sums"),
        (["--rank", "0"], 'unknown rank "0"'),
        (["--between", "0", "1"], "by between, found only sums"),
        (["--memory"], "by memory, found only sums"),
        (["--section", "7"], 'unknown section "7"'),
        (["--format", "kineto"], "table.txt"),
    ],
)
def test_what_sums_cannot_answer_is_refused(
    options: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("kernels", file, *options, capsys=capsys)
    assert (code, out) == (3, "")
    assert said in err


def test_summary_speaks_of_what_is_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("summary", file, capsys=capsys)
    assert "Devices" not in out
    assert "No kernels" not in out
    assert "3 totals, 4 log" in out
    assert "One line of text names kernels" in out
    _, out, _ = run("summary", file, "--json", capsys=capsys)
    lines = [line for line in json.loads(out)["log"] if line["kind"] == "remark"]
    assert [(line["text"], line["source"], json.loads(line["fields"])) for line in lines] == [
        ("norm_k 总是最后", "src/norm.cu", {"path": "src/norm.cu", "kernels": ["norm_k"]})
    ]


def test_a_store_of_a_table_answers_as_the_table(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "table.ifm"
    assert run("import", file, "-o", store, capsys=capsys)[0] == 0
    for words in (["kernels", "--csv"], ["summary", "--markdown"]):
        of_file, of_store = (run(words[0], source, *words[1:], capsys=capsys) for source in (file, store))
        assert of_file == (of_store[0], of_store[1].replace(store.name, file.name), of_store[2])
    tables = [json.loads(run("kernels", source, "--json", capsys=capsys)[1]) for source in (file, store)]
    assert [Path(table.pop("source")).name for table in tables] == [file.name, store.name]
    for table in tables:
        del table["losses"]  # a store counts those of all its tables
    assert tables[0] == tables[1]
