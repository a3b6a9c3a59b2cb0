"""What a recording starts, stops and says: with parts that only tell what was done with them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.record.fakes import Fakes

import inferometer
from inferometer.errors import InputError
from inferometer.privacy.secrets import MASK
from inferometer.record.about import command_line, find_rank, masked
from inferometer.record.clock import Clock
from inferometer.record.parts import OPS, Options, why_no_ops
from inferometer.record.plan import VARIABLE, Plan, parts_folder, read_plan
from inferometer.record.recorder import Recording
from inferometer.record.running import RUNNING
from inferometer.record.start import record

CPU = SimpleNamespace(__version__="2.13.0+cpu", version=SimpleNamespace(cuda=None, hip=None), get_num_threads=lambda: 3)


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Something that looks like a torch that was imported, of a machine without GPUs."""
    monkeypatch.setitem(sys.modules, "torch", CPU)
    yield
    assert not RUNNING


def recording(folder: Path, fakes: Fakes, name: str = "run.ifm", **options: object) -> Recording:
    return Recording(folder / name, Options(**options), makers=fakes.makers)  # type: ignore[arg-type]


def spans(fakes: Fakes, journal: int = 0) -> list[str]:
    return [columns["span"] for _, columns in fakes.journals[journal].rows]


def test_the_package_is_the_function_and_its_modules_can_be_imported() -> None:
    assert isinstance(inferometer.record("x.ifm"), Recording)
    assert sys.modules["inferometer.record.clock"].Clock is Clock


def test_parts_start_in_order_and_what_they_hold_back_is_written_when_they_stop(tmp_path: Path) -> None:
    fakes = Fakes()
    with recording(tmp_path, fakes, profile=True) as made:
        assert made.is_running
    made.stop()
    assert fakes.said == [f"{name} starts" for name in ("counters", "ops", "profile")] + [
        f"{name} stops" for name in ("counters", "profile", "ops")
    ]
    assert len(spans(fakes)) == 6
    (journal,) = fakes.journals
    assert (journal.closed, made.remarks, made.is_running) == (1, [], False)
    assert journal.facts.recorded == {"counters": True, "ops": True, "stacks": True}
    assert journal.facts.framework == "PyTorch"
    assert journal.facts.versions["torch"] == "2.13.0+cpu"
    assert journal.facts.settings == {"torch threads": "3", "CUDA_LAUNCH_BLOCKING": "0"}
    assert journal.facts.processes[0].process == os.getpid()
    assert journal.facts.notes[0].startswith("Command: ")


def test_what_is_not_wanted_is_not_started(tmp_path: Path) -> None:
    fakes = Fakes()
    with recording(tmp_path, fakes, counters=False):  # no GPU here: no profile either
        pass
    with recording(tmp_path, fakes, ops=False):
        pass
    assert [line for line in fakes.said if "starts" in line] == ["ops starts", "counters starts"]


def test_a_part_that_cant_start_is_said_once_and_the_others_go_on(tmp_path: Path) -> None:
    fakes = Fakes(counters="no /proc here", ops="torch is in the way")
    with recording(tmp_path, fakes, profile=True) as made:
        pass
    assert fakes.said == ["profile starts", "profile stops"]
    assert made.remarks == [
        "Counters couldn't be recorded: OSError: no /proc here",
        "Ops couldn't be recorded: OSError: torch is in the way",
    ]
    assert fakes.journals[0].facts.notes[1:] == tuple(made.remarks)


def test_an_exception_of_the_program_passes_and_is_noted(tmp_path: Path) -> None:
    fakes = Fakes()
    with pytest.raises(ZeroDivisionError), recording(tmp_path, fakes):
        1 / 0  # noqa: B018
    assert fakes.journals[0].closed == 1
    assert "The recording ended with ZeroDivisionError." in fakes.journals[0].facts.notes


def test_a_recording_within_one_has_counters_of_its_own_the_same_ops_and_the_same_clock(tmp_path: Path) -> None:
    fakes = Fakes()
    with recording(tmp_path, fakes) as outer, recording(tmp_path, fakes, "inner.ifm") as inner:
        assert outer.clock == inner.clock
        assert OPS.recorder is not None
        OPS.recorder.sink.add("spans", 1, {"span": "for both"})  # type: ignore[attr-defined]
    assert spans(fakes, 0) == ["counters first", "ops first", "for both", "counters last", "ops last"]
    assert spans(fakes, 1) == ["counters first", "for both", "counters last"]
    assert fakes.said.count("ops starts") == fakes.said.count("ops stops") == 1
    assert OPS.recorder is None


def test_the_outer_one_may_end_first(tmp_path: Path) -> None:
    fakes = Fakes()
    outer, inner = recording(tmp_path, fakes).start(), recording(tmp_path, fakes, "inner.ifm").start()
    outer.stop()
    assert "ops stops" not in fakes.said
    inner.stop()
    assert spans(fakes, 1) == ["counters first", "counters last", "ops last"]


def test_ops_are_waited_for_until_torch_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '2.13.0'\nclass version: cuda = hip = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    finders = list(sys.meta_path)
    fakes = Fakes()
    with recording(tmp_path, fakes, counters=False):
        assert fakes.said == []
        import torch

        assert fakes.said == ["ops starts"]
        assert torch.__spec__ is not None
        assert "exec_module" not in vars(torch.__spec__.loader)
        assert sys.meta_path == finders
    monkeypatch.delitem(sys.modules, "torch")
    with recording(tmp_path, fakes, counters=False) as made:
        pass
    assert made.remarks == ["No ops are recorded: the program never imported torch."]
    assert sys.meta_path == finders


def test_an_old_torch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.1.0", version=CPU.version))
    fakes = Fakes()
    with recording(tmp_path, fakes, counters=False) as made:
        pass
    assert made.remarks == ["No ops are recorded: torch 2.1.0 is older than 2.6."]
    assert fakes.said == []


@pytest.mark.parametrize(("version", "works"), [("2.6.0", True), ("2.10.0a0+git", True), ("3.0", True), ("2.5", False)])
def test_versions_compare_as_numbers(version: str, works: bool) -> None:
    assert (why_no_ops(SimpleNamespace(__version__=version)) is None) == works


def test_workers_are_told_by_the_environment_which_is_as_before_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONPATH", "mine")
    with recording(tmp_path, Fakes(), stacks=False) as made:
        plan = read_plan(os.environ)
        assert plan is not None
        assert (plan.clock, Path(plan.folder), plan.stacks) == (made.clock, parts_folder(made.path), False)
        assert os.environ["PYTHONPATH"].endswith(os.pathsep + "mine")
    assert (VARIABLE in os.environ, os.environ["PYTHONPATH"]) == (False, "mine")
    assert not parts_folder(made.path).exists()
    with recording(tmp_path, Fakes(), workers=False):
        assert VARIABLE not in os.environ


def test_a_plan_of_a_recording_that_is_over_or_that_is_garbage_is_none(tmp_path: Path) -> None:
    environment = Plan(str(tmp_path), 1, 2).environment({})
    assert read_plan(environment) == Plan(str(tmp_path), 1, 2)
    assert read_plan(Plan(str(tmp_path / "gone"), 1, 2).environment({})) is None
    assert read_plan({VARIABLE: "{"}) is None
    assert read_plan({}) is None
    nth = Plan.of(str(tmp_path), Clock(1, 2), Options(ops_every=8))
    assert read_plan(nth.environment({})) == Plan(str(tmp_path), 1, 2, ops_every=8)
    again = Plan(str(tmp_path), 1, 2).environment(environment)
    assert again["PYTHONPATH"] == environment["PYTHONPATH"]


def test_a_recording_starts_once_and_at_a_sensible_rate(tmp_path: Path) -> None:
    made = recording(tmp_path, Fakes())
    with made:
        pass
    with pytest.raises(InputError, match="was started before"):
        made.start()
    with pytest.raises(InputError, match="samples per second, found"):
        record(tmp_path / "x.ifm", hz=1e6)
    with pytest.raises(InputError, match="at least 1 step, found 0"):
        record(tmp_path / "x.ifm", ops_every=0)


def test_something_in_the_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.ifm").mkdir()
    with pytest.raises(InputError, match="already exists"):
        record(tmp_path / "run.ifm").start()


def test_a_step_without_a_recording_does_nothing() -> None:
    with inferometer.step(phase="decode", batch=8):
        pass
    inferometer.step()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key", "x", "y"], ["--api-key", MASK, "y"]),
        (["--api_key=x", "--key", "--flag"], [f"--api_key={MASK}", "--key", "--flag"]),
        (["HF_TOKEN=x", "-p", "8000"], [f"HF_TOKEN={MASK}", "-p", "8000"]),
        (["--max-tokens", "7", "--tokenizer=t"], ["--max-tokens", "7", "--tokenizer=t"]),
        (["http://me:word@host/x"], [f"http://{MASK}@host/x"]),
        (["sk-" + "a1" * 10, "ghp_" + "b2" * 10], [MASK, MASK]),
        (["key", "monkey", "--monkey", "x"], ["key", "monkey", "--monkey", "x"]),
    ],
)
def test_secrets_are_masked_and_the_rest_is_left(words: list[str], shown: list[str]) -> None:
    assert masked(words) == shown


def test_a_command_line_can_be_typed_again() -> None:
    assert command_line(["python", "a b.py", "--token", "x"]) == f"python 'a b.py' --token {MASK}"


def test_the_rank_is_the_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert find_rank() is None
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert find_rank() == 1
    monkeypatch.setenv("RANK", "9")
    assert find_rank() == 9
