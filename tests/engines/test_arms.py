"""Who runs an operator: the user's choice, what a backend refuses, and what is noted of it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.engines.made_backends import decoder_backend

from inferometer.backends.backend import Backend, DecoderKernel
from inferometer.engines import arms
from inferometer.engines.arms import Arm, Check, call, checking, parse_arm, using
from inferometer.engines.paths import PathRecorder
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators.decoder.contracts import CONTRACTS


def backend(name: str, *operators: str, refuses: str | None = None, unavailable: str | None = None) -> Backend:
    """One whose operators answer with its name."""
    return decoder_backend(
        name,
        operators,
        lambda operator: DecoderKernel(lambda *args, **settings: name, lambda *args, **settings: refuses),
        unavailable=lambda device: unavailable,
    )


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Backend]]:
    """Backends of the test, in the place of all others."""
    found = {
        "torch": backend("torch", *CONTRACTS),
        "some": backend("some", "rms_norm", "rope", "attention_prefill", "attention_decode"),
        "fussy": backend("fussy", *CONTRACTS, refuses="head size 80"),
        "away": backend("away", "rope", unavailable="it is not installed"),
    }
    monkeypatch.setattr(arms, "known_backends", lambda: found)
    arms._base.cache_clear()
    yield found
    arms._base.cache_clear()


def ran(arm: Arm, operator: str) -> tuple[Any, str | None]:
    """The answer, and what is noted for its call path."""
    recorder = PathRecorder()
    with using(arm), recorder.entered():
        out = call(operator, 1, site="here")
    assert [path.key for path in recorder.paths] == ["here"]
    return out, recorder.backend[0]


def test_a_named_backend_takes_what_it_has_and_torch_the_rest_with_the_reason() -> None:
    arm = parse_arm("some")
    assert ran(arm, "rope") == ("some", "some")
    assert ran(arm, "linear") == ("torch", "torch (some has no linear)")
    assert arm.backend_of("linear") == "torch"


def test_operators_can_have_a_backend_each_and_attention_is_two() -> None:
    arm = parse_arm("rms_norm=some, attention=fussy")
    assert {operator: each.name for operator, each in arm.backends.items()} == {
        "rms_norm": "some",
        "attention_prefill": "fussy",
        "attention_decode": "fussy",
    }
    assert ran(arm, "rms_norm") == ("some", "some")
    assert ran(arm, "linear") == ("torch", "torch")


def test_a_refused_call_is_torchs_and_says_why() -> None:
    assert ran(parse_arm("fussy"), "rope") == ("torch", "torch (fussy: head size 80)")


def test_plain_torch_is_asked_whether_it_refuses_too_so_that_each_arm_takes_what_asking_takes(
    known: dict[str, Backend],
) -> None:
    asked: list[str] = []

    def asking(name: str) -> Backend:
        def refuses(*args: Any, **settings: Any) -> None:
            asked.append(name)

        return decoder_backend(name, ["rope"], lambda operator: DecoderKernel(lambda *args: name, refuses))

    known["torch"] = asking("torch")
    assert ran(arms.TORCH_ONLY, "rope") == ("torch", "torch")
    assert ran(Arm("own", {"rope": asking("own")}), "rope") == ("own", "own")
    assert asked == ["torch", "own"]


def test_a_backend_that_raises_is_not_replaced(known: dict[str, Backend]) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("illegal instruction")

    bad = decoder_backend("bad", ["rope"], lambda operator: DecoderKernel(fail))
    with using(Arm("bad", {"rope": bad})), pytest.raises(RuntimeError, match="illegal instruction"):
        call("rope", 1)


def test_the_process_is_prepared_for_a_backend_when_it_is_chosen(known: dict[str, Backend]) -> None:
    devices: list[str] = []
    known["own"] = decoder_backend("own", ["rope"], lambda operator: DecoderKernel(print), prepare=devices.append)
    parse_arm("rope=own", "cuda:1")
    assert devices == ["cuda:1"]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("tritn", UnknownName, 'unknown backend "tritn"'),
        ("", UnknownName, "unknown backend"),
        ("norm=some", UnknownName, 'unknown operator of a model "norm"'),
        ("rope=some,rope=fussy", InputError, "rope has two backends"),
        ("rope=some,attention", InputError, 'expected OPERATOR=BACKEND'),
        ("linear=some", InputError, "some has no linear"),
        ("away", Unavailable, "away can't run on cpu: it is not installed"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_refused_with_what_is_wrong(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        parse_arm(text)


def test_a_check_sees_every_call_and_its_answer_counts() -> None:
    seen: list[tuple[str, Any]] = []

    class Look(Check):
        def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
            seen.append((operator, super().__call__(operator, args, settings)))
            return "checked"

    with using(parse_arm("some")), checking(Look()):
        assert call("rope", 1) == "checked"
        assert call("linear", 1) == "checked"
    assert seen == [("rope", "some"), ("linear", "torch")]
    with using(parse_arm("some")):
        assert call("rope", 1) == "some"
