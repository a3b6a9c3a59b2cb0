"""Who takes part, and what is reported of those who can't."""

import hashlib
from pathlib import Path

import pytest

from inferometer.bench.candidates import choose_candidates
from inferometer.bench.isolation import ProcessLimits
from inferometer.bench.shapes import choose_shapes, fit_device
from inferometer.bench.timer_choice import choose_timer
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators import require_operator

pytest.importorskip("torch", reason="torch isn't installed")


def test_backends_come_in_their_order_and_the_candidate_last(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1")
    found = choose_candidates(("reference", "torch", "reference"), file, "cpu")
    assert [each.name for each in found.entrants] == ["reference", "torch", "mine.py"]
    contender = found.entrants[-1].as_contender()
    assert (contender.kind, contender.sha256) == ("file", hashlib.sha256(b"x = 1").hexdigest())


def test_all_are_those_that_can_run_here_and_the_others_say_why() -> None:
    found = choose_candidates(("all",), None, "cpu")
    assert found.entrants[0].name == "torch"
    assert "reference" not in {each.name for each in found.entrants}
    assert found.refused["aiter"].startswith("aiter")
    assert not set(found.refused) & {each.name for each in found.entrants}


def test_one_that_was_named_and_can_t_run_is_refused() -> None:
    with pytest.raises(Unavailable, match="aiter can't run on cpu"):
        choose_candidates(("torch", "aiter"), None, "cpu")
    with pytest.raises(UnknownName, match='unknown backend "torhc"'):
        choose_candidates(("torhc",), None, "cpu")


def test_a_backend_is_asked_only_for_what_it_has() -> None:
    (torch,) = choose_candidates(("torch",), None, "cpu").entrants
    assert torch.serves("rms_norm")
    assert not torch.serves("no_such_operator")


@pytest.mark.parametrize(
    ("hip", "device", "given"), [(None, "cuda:0", True), (None, "cpu", False), ("6.4", "cuda:0", False)]
)
def test_gpus_of_nvidia_get_the_fp8_that_they_have(
    hip: str | None, device: str, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.version.hip", hip)
    quantise = choose_shapes(require_operator("fp8_dynamic_per_token_quant"), "0,1")
    assert all(("fp8_dtype" in args) == given for _, args in fit_device(quantise, device).shapes)
    norm = choose_shapes(require_operator("rms_norm"), "0")
    assert fit_device(norm, device) == norm


def test_a_cpu_has_the_host_s_clock_alone() -> None:
    assert choose_timer(None, "cpu", lambda path: [], ProcessLimits()).timer == "host"
    with pytest.raises(InputError, match="--timer graph is for GPUs"):
        choose_timer("graph", "cpu", lambda path: [], ProcessLimits())
    with pytest.raises(InputError, match="--timer host is for CPUs"):
        choose_timer("host", "cuda:0", lambda path: [], ProcessLimits())


def test_the_best_timer_that_works_is_taken_and_the_others_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = {"cupti": "the profiler lost 3 launches", "graph": None, "events": None}
    monkeypatch.setattr("inferometer.bench.timer_choice._try", lambda timer, *_: why[timer])
    found = choose_timer(None, "cuda:0", lambda path: [], ProcessLimits())
    assert (found.timer, found.refused) == ("graph", {"cupti": "the profiler lost 3 launches"})
    with pytest.raises(Unavailable, match="no timer works on cuda:0: cupti: the profiler lost 3 launches"):
        choose_timer("cupti", "cuda:0", lambda path: [], ProcessLimits())
