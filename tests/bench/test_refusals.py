"""A backend that says it can't do a shape is refused there, not wrong."""

import pytest

from inferometer.bench.results import REFUSED, ShapeResult


def test_a_refusal_is_no_wrong_answer() -> None:
    about = {"operator": "rms_norm", "shape": "0: x", "args": {}, "candidate": "vllm", "cases": 1}
    found = [ShapeResult(**about, failure=failure) for failure in (None, "out: bad", f"{REFUSED}heads of 72")]  # type: ignore[arg-type]
    assert [each.verdict for each in found] == ["right", "wrong", "refused"]


def test_what_a_backend_refuses_is_told_by_its_process() -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    from inferometer.bench.process import worker
    from inferometer.errors import Unavailable

    def refuse(request: dict[str, object]) -> None:
        raise Unavailable("heads of 72 columns aren't supported")

    said: list[str] = []

    class Replies:
        def write(self, line: str) -> None:
            said.append(line)

    assert worker._attempt(refuse, {}, Replies()) is None  # type: ignore[arg-type]
    assert said == ['{"error": "refused: heads of 72 columns aren\'t supported"}\n']
