"""Solutions that can't be called are refused with the place; names of files say which problem a model is for."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bench.problems.datasets import ALL, GEMM, NORM, solution, write, write_dataset

from inferometer.bench.problems.solutions import pack_solution, read_solution
from inferometer.bench.problems.suite import find_problems, is_model_of, root_of
from inferometer.errors import FormatError, InputError

RIGHT = "def run(A, B):\n    return A @ B.T\n"


def changed(**spec: Any) -> dict[str, Any]:
    return solution(GEMM, RIGHT, **spec)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (changed(language="cuda"), "spec.language: cuda isn't run here: expected python or triton"),
        (changed(language=["python", "C++"]), "spec.language: C++ isn't run here"),
        (changed(language=3), "spec.language: expected a text, found 3"),
        (changed(language=[]), "spec.language: expected a text"),
        (changed(entry_point="main.py"), 'spec.entry_point: expected FILE.py::FUNCTION, found "main.py"'),
        (changed(entry_point="main.cu::run"), "spec.entry_point: expected FILE.py::FUNCTION"),
        (changed(entry_point="other.py::run"), '"other.py" is none of the sources'),
        (changed(entry_point="main.py::a b"), "spec.entry_point: expected FILE.py::FUNCTION"),
        (solution(GEMM, {"../main.py": RIGHT}), 'path: expected a path below the solution, found "../main.py"'),
        (solution(GEMM, {"/main.py": RIGHT}), "expected a path below the solution"),
        (solution(GEMM, {"a/../../b.py": RIGHT}), "expected a path below the solution"),
        (solution(GEMM, {"C:\\main.py": RIGHT}), "expected a path below the solution"),
        (solution(GEMM, {"a\0.py": RIGHT}), "expected a path below the solution"),
        ({**changed(), "sources": 2 * changed()["sources"]}, '"main.py" is there twice'),
        ({**changed(), "sources": [{"path": "main.py"}]}, "sources[0]"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_refused(found: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_solution(write(tmp_path / "a.json", json.dumps(found)))
    assert words in str(error.value)
    assert "a.json" in str(error.value)


def test_languages_are_read_in_either_form(tmp_path: Path) -> None:
    for language in ("python", "Triton", ["triton"]):
        path = write(tmp_path / "a.json", json.dumps(changed(language=language)))
        assert read_solution(path).solution.definition == GEMM["name"]


def test_sources_lie_below_the_folder_and_a_single_one_keeps_its_lines(tmp_path: Path) -> None:
    from inferometer.bench.problems.definition_files import read_definition

    of = read_definition(write(tmp_path / "d.json", json.dumps(GEMM)))
    alone = read_solution(write(tmp_path / "a.json", json.dumps(changed())))
    packed = pack_solution(alone.solution, of, tmp_path / "one")
    assert packed.file is not None
    assert packed.file.read_text().startswith(RIGHT)
    several = solution(GEMM, {"a/main.py": RIGHT, "b.py": ""}, entry_point="a/main.py::run")
    read = read_solution(write(tmp_path / "b.json", json.dumps(several)))
    pack_solution(read.solution, of, tmp_path / "two")
    assert sorted(str(path.relative_to(tmp_path / "two")) for path in (tmp_path / "two").rglob("*.py")) == [
        "candidate_file.py", "solution_two/a/main.py", "solution_two/b.py",
    ]  # fmt: skip


def test_kernels_of_a_single_file_are_its_own(tmp_path: Path) -> None:
    from inferometer.bench.problems.definition_files import read_definition

    of = read_definition(write(tmp_path / "d.json", json.dumps(GEMM)))
    text = "import triton\n\n@triton.jit\ndef product(x):\n    pass\n\n" + RIGHT
    read = read_solution(write(tmp_path / "a.json", json.dumps(solution(GEMM, text))))
    assert pack_solution(read.solution, of, tmp_path / "one").own_kernels == {"product"}


def test_a_data_set_is_found_from_wherever_it_is_named(tmp_path: Path) -> None:
    root = write_dataset(tmp_path)
    every = [each["name"] for each in ALL]
    assert sorted(each.name for each in find_problems(root)) == sorted(every)
    assert [each.name for each in find_problems(root, ("gemm_*", "rms*"))] == [GEMM["name"], NORM["name"]]
    (one,) = find_problems(root / "definitions" / "gemm")
    assert (one.name, one.root) == (GEMM["name"], root.resolve())
    assert root_of(root / "definitions" / "gemm" / "a.json") == root.resolve()
    with pytest.raises(InputError, match="no problem is called nothing") as error:
        find_problems(root, ("nothing",))
    assert GEMM["name"] in str(error.value)


def test_nothing_to_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected definitions or problems, found none"):
        find_problems(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        find_problems(tmp_path / "none")
    write(tmp_path / "a.json", json.dumps(GEMM)[:300])
    with pytest.raises(FormatError, match=r"a\.json"):
        find_problems(tmp_path)


def test_a_broken_definition_stands_next_to_the_others_with_the_reason(tmp_path: Path) -> None:
    root = write_dataset(tmp_path, (GEMM,))
    write(root / "definitions" / "gemm" / "broken.json", "{}")
    broken, found = find_problems(root)
    assert (broken.name, found.name) == ("broken", GEMM["name"])
    assert "broken.json" in str(broken.broken)
    assert [each.name for each in find_problems(root, ("gemm_*",))] == [GEMM["name"]]
    with pytest.raises(FormatError, match=r"broken\.json"):
        find_problems(root, ("broken",))


@pytest.mark.parametrize(
    ("file", "problem", "expected"),
    [
        ("1_Square.py", "level1/1_Square.py", True),
        ("1_mine.py", "level1/1_Square.py", True),
        ("11_mine.py", "level1/1_Square.py", False),
        ("level_1_problem_1_sample_0_kernel.py", "level1/1_Square.py", True),
        ("level_2_problem_1_sample_0_kernel.py", "level1/1_Square.py", False),
        ("level_2_problem_1_sample_0_kernel.py", "problems/1_Square.py", True),
        ("other.py", "level1/Square.py", False),
    ],
)
def test_a_models_file_says_which_problem_it_is_for(file: str, problem: str, expected: bool) -> None:
    assert is_model_of(Path(file), Path(problem)) is expected
