"""`ab` as users meet it: what goes together, what is refused before any work, how a run that ended early leaves."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.analyses.ab.runs import Call, measured, op
from tests.commands.test_command_line import run

from inferometer.analyses.ab.measurement import PathMeasurement
from inferometer.commands.ab import _describe
from inferometer.engines import arms
from inferometer.engines.ab.progress import Progress

HAS_TORCH = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch isn't installed")
Said = tuple[int, str, str]


def completion(ns: int) -> Call:
    return Call("completion", 1_000, [Call("prefill", 10, [op("linear", ns)])])


def made(slow_ns: int = 100_000, **others: Any) -> PathMeasurement:
    runs = {
        "torch": [completion(100_000 + i) for i in range(5)],
        "compile": [completion(slow_ns + i) for i in range(5)],
    }
    return measured(runs, facts={"model": "tiny", "device": "cpu", **others.pop("facts", {})}, **others)


def arm(text: str) -> SimpleNamespace:
    return SimpleNamespace(name=text, backends={"linear": SimpleNamespace(interpreted="triton" in text)})


@pytest.fixture
def ab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The command with a measurement that is there already; what it asked for is in `ab.asked`."""

    def answer(*words: object, found: PathMeasurement | None = None) -> Said:
        asked: list[Any] = []

        def measure(*args: Any, **options: Any) -> PathMeasurement:
            asked.append((args, options))
            return found or made()

        stand_in = SimpleNamespace(Plan=lambda **sizes: sizes, measure_ab=measure)
        monkeypatch.setitem(sys.modules, "inferometer.engines.ab", stand_in)
        monkeypatch.setitem(
            sys.modules,
            "inferometer.engines.hf.model",
            SimpleNamespace(load_model=lambda name, **options: (name, options)),
        )
        monkeypatch.setattr("inferometer.commands.options.devices.require_device_at", lambda device: device)
        monkeypatch.setattr(arms, "parse_arm", lambda text, device: arm(text))
        said = run("ab", *words, capsys=capsys)
        answer.asked = asked  # type: ignore[attr-defined]
        return said

    return answer


def test_sizes_arms_and_places_are_handed_on(ab: Callable[..., Said], tmp_path: Path) -> None:
    words = ("tiny-qwen3", "--backends", "torch, compile", "--arm", "rope=triton", "--prompt-tokens", 7, "--batch", 2)
    code, _, _ = ab(*words, "--new-tokens", 3, "--repetitions", 5, "--seed", 9, "--traces", tmp_path, "--force")
    assert code == 0
    (((engine, asked, plan), options),) = ab.asked  # type: ignore[attr-defined]
    assert engine == ("tiny-qwen3", {"device": "cpu", "dtype": "float32", "seed": 9})
    assert [arm.name for arm in asked] == ["torch", "compile", "rope=triton"]
    assert plan == {"prompt_tokens": 7, "new_tokens": 3, "batch": 2, "repetitions": 5, "seed": 9}
    assert (options["stores"], options["force"]) == (tmp_path, True)


@pytest.mark.parametrize(
    ("left_ns", "said"),
    [
        (None, "torch, repetition 2 of 4 with scopes"),
        ((60_400_000_000, 130_000_000_000), "torch, repetition 2 of 4 with scopes, about 60 to 130 s left"),
        ((7_000_000_000, 7_000_000_000), "torch, repetition 2 of 4 with scopes, about 7 s left"),
        ((6_900_000_000, 7_100_000_000), "torch, repetition 2 of 4 with scopes, about 7 s left"),
    ],
)
def test_what_runs_is_said_with_how_long_it_takes(left_ns: tuple[int, int] | None, said: str) -> None:
    assert _describe(Progress("torch", "repetition", " with scopes", 2, 4, left_ns)) == said


@pytest.mark.parametrize(
    ("words", "sizes", "said"),
    [
        ((), (4, 2, 3), ": --prompt-tokens 4, --new-tokens 2, --repetitions 3."),
        (("--new-tokens", 5), (4, 5, 3), ": --prompt-tokens 4, --repetitions 3."),
        (("--prompt-tokens", 64, "--new-tokens", 16, "--repetitions", 10), (64, 16, 10), None),
        (("--on", "cuda:0"), (64, 16, 10), None),
    ],
)
def test_interpreted_kernels_get_small_sizes_unless_others_are_given(
    ab: Callable[..., Said], words: tuple[object, ...], sizes: tuple[int, ...], said: str | None
) -> None:
    _, _, err = ab("tiny-llama", "--backends", "torch,triton", *words)
    (((_, _, plan), _),) = ab.asked  # type: ignore[attr-defined]
    assert (plan["prompt_tokens"], plan["new_tokens"], plan["repetitions"]) == sizes
    assert (said is None) == ("interpreted" not in err)
    assert said is None or said in err


def test_interpreted_kernels_are_no_default(ab: Callable[..., Said]) -> None:
    for device, names in (("cpu", ["torch", "compile"]), ("cuda:0", ["torch", "triton"])):
        ab("tiny-llama", "--on", device)
        (((_, asked, _), _),) = ab.asked  # type: ignore[attr-defined]
        assert [arm.name for arm in asked] == names


def test_an_arm_by_operators_is_held_against_torch(ab: Callable[..., Said]) -> None:
    ab("tiny-llama", "--arm", "rms_norm=triton")
    (((_, asked, _), _),) = ab.asked  # type: ignore[attr-defined]
    assert [arm.name for arm in asked] == ["torch", "rms_norm=triton"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a MODEL to run"),
        (("tiny-llama", "--backends", "torch"), "expected two arms or more, found torch"),
        (("tiny-llama", "--read", "t.txt"), "MODEL and --read are mutually exclusive"),
        (("--read", "t.txt", "--backends", "torch"), "--backends and --read"),
        (("--read", "t.txt", "-o", "a.html"), "--output and --read"),
        (("tiny-llama", "--layout", "ab-table", "--json"), "--layout ab-table and --json"),
        (("tiny-llama", "--batch", 0), "0 is not in the range"),
        (("tiny-llama", "-o", "a.pdf"), "a.pdf: expected a name in .html"),
    ],
)
def test_what_does_not_go_together_is_refused_before_any_work(
    ab: Callable[..., Said], words: tuple[object, ...], said: str
) -> None:
    code, out, err = ab(*words)
    assert (code, out, ab.asked) == (2, "", [])  # type: ignore[attr-defined]
    assert said in err


def test_a_page_is_not_replaced_without_force(ab: Callable[..., Said], tmp_path: Path) -> None:
    page = tmp_path / "ab.html"
    page.write_text("<!doctype html>mine")
    code, _, err = ab("tiny-llama", "-o", page)
    assert (code, page.read_text(), ab.asked) == (3, "<!doctype html>mine", [])  # type: ignore[attr-defined]
    assert "ab.html" in err
    code, _, err = ab("tiny-llama", "-o", page, "--force")
    assert code == 0
    assert "<!doctype html>" in page.read_text("utf-8")[:20].lower()
    assert str(tmp_path) not in page.read_text("utf-8")


def test_a_page_tells_how_it_is_made_again_without_folders(ab: Callable[..., Said], tmp_path: Path) -> None:
    page, words = tmp_path / "ab.md", ("--arm", "rope=triton", "--arm", "linear=compile", "--batch", 2, "--force")
    code, _, _ = ab(tmp_path / "my model", "-o", page, "--traces", tmp_path / "runs", *words)
    text = page.read_text("utf-8").replace("\\", "")
    assert code == 0
    assert "inferometer ab 'my model' --arm rope=triton --arm linear=compile --batch 2 --traces runs" in text
    assert "--output ab.md --force" in text
    assert str(tmp_path) not in text


def test_json_is_the_contract(ab: Callable[..., Said]) -> None:
    code, out, _ = ab("tiny-llama", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["arms"] == ["torch", "compile"]
    assert {"path", "depth", "calls", "arms", "ratio", "interval", "verdict", "max_error"} <= found["paths"][0].keys()
    own = found["paths"][0]["arms"]["torch"]
    assert {"backend", "host_ns", "device_busy_ns", "span_ns", "self_ns", "interval_ns"} <= own.keys()
    assert {"root", "overhead"} <= found.keys()


def test_csv_has_a_row_a_path_and_the_seeds_layout_a_column_an_arm(ab: Callable[..., Said]) -> None:
    _, out, _ = ab("tiny-llama", "--csv")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == [
        *("completion", "completion.prefill", "completion.prefill.linear"),
    ]
    _, out, _ = ab("tiny-llama", "--layout", "ab-table")
    heads = [cell.strip() for cell in out.splitlines()[1].strip("|").split("|")]
    assert heads == ["kernel", "kernel_path", "torch", "compile", "torch-compile"]


def test_check_fails_where_a_path_is_slower(ab: Callable[..., Said]) -> None:
    assert ab("tiny-llama", "--check")[0] == 0
    assert ab("tiny-llama", "--check", found=made(150_000))[0] == 1


@pytest.mark.parametrize(("facts", "code"), [({"interrupted": True}, 130), ({}, 3)])
def test_what_was_measured_before_the_end_is_shown(ab: Callable[..., Said], facts: dict[str, Any], code: int) -> None:
    found = made(facts=facts, ended="compile, repetition 6 of 10: in decode: RuntimeError: no")
    left, out, err = ab("tiny-llama", found=found)
    assert left == code
    assert "completion" in out
    assert "ended early: compile, repetition 6 of 10" in err


def test_a_shifted_table_is_read_and_put_right(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = seeds.glob("000_*.txt")
    code, out, _ = run("ab", "--read", table, "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0
    assert {"shifted_rows", "missing_key"} <= {each["kind"] for each in found["found"]}
    assert run("ab", "--read", table, "--check", capsys=capsys)[0] == 1


@pytest.mark.parametrize("text", ["", "kernel,kernel_path\n", "\x00\xff", "{}"])
def test_what_is_no_table_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.txt"
    file.write_text(text)
    code, out, err = run("ab", "--read", file, capsys=capsys)
    assert (code, out) == (3, "")
    assert "table.txt" in err


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_without_torch_the_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("ab", "tiny-llama", capsys=capsys)
    assert code == 4
    assert "pip install 'inferometer[torch]'" in err


@needs_torch
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("no-such-model",), 3, "no-such-model"),
        (("tiny-llama", "--backends", "torch,tritn"), 3, 'unknown backend "tritn"'),
        (("tiny-llama", "--on", "cuda:7"), 4, "there is no GPU cuda:7 here"),
    ],
)
def test_what_is_not_there_is_told(
    words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    left, _, err = run("ab", *words, capsys=capsys)
    assert left == code
    assert said in err
