"""`inferometer groups` as users meet it."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import call, event, kernel, write_file

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "decode.json.gz"


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    events = []
    for i in range(6):
        at = 100 * i
        events += [
            event("cpu_op", "aten::mm", str(at), "20"),
            call(ts=str(at + 1), correlation=2 * i),
            call(ts=str(at + 5), correlation=2 * i + 1),
            kernel("nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", str(at + 10), "3", correlation=2 * i),
            kernel("void cublasLt::splitKreduce_kernel<32>(int)", str(at + 15), "1", correlation=2 * i + 1),
        ]
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(events))
    return path


def test_a_group_is_printed_with_the_call_to_intercept(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("groups", trace_file, capsys=capsys)
    assert (code, err) == (0, "")
    assert "split-K GEMM: 6 times" in out
    assert "Intercept aten::mm, or below it the cuBLAS call" in out
    assert "Site: aten::mm" in out


def test_json_has_the_declared_shape(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("groups", trace_file, "--json", capsys=capsys)
    data = json.loads(out)
    (group,) = data["groups"]
    assert [(member["role"], member["count"]) for member in group["members"]] == [
        ("split-K GEMM", 6),
        ("splitK reduce", 6),
    ]
    assert (group["count"], group["total_ns"], group["site"]["op"]) == (6, 24_000, "aten::mm")
    assert data["refused"] == []


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--stream", "99"], 3, 'unknown stream "99"'),
        (["--section", "4"], 3, 'unknown section "4"'),
        (["--min-support", "0"], 2, "min-support"),
        (["--top", "x"], 2, "top"),
    ],
)
def test_what_is_not_there_is_refused(
    options: list[str], code: int, message: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run("groups", trace_file, *options, capsys=capsys)
    assert (found, out) == (code, "")
    assert message in err


def test_options_choose_groups(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, groups in (
        (["--min-support", "7"], 0),
        (["--device", "0", "--top", "3"], 1),
        (["--between", "0", "250us"], 1),
    ):
        code, out, _ = run("groups", trace_file, "--json", *options, capsys=capsys)
        assert (code, len(json.loads(out)["groups"])) == (0, groups)


def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("no profile ☃")
    code, out, err = run("groups", tmp_path / "x.json", capsys=capsys)
    assert (code, out) == (3, "")
    assert "Traceback" not in err


def test_the_sample_is_answered_in_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("groups", SAMPLE, "--markdown", capsys=capsys)
    assert code == 0
    assert "FlashInfer attention with merge" in out


def test_a_file_to_learn_from_is_read_or_refused(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run("groups", trace_file, "--learn-from", trace_file, "--json", capsys=capsys)
    data = json.loads(out)
    assert (code, data["learned_from"]) == (0, [str(trace_file)])
    assert any("Nothing was learned from" in remark for remark in data["remarks"])  # its own ops are known
    broken = tmp_path / "broken.json"
    broken.write_text('{"traceEvents":')
    for path in (broken, tmp_path / "nowhere.json"):
        code, _, err = run("groups", trace_file, "--learn-from", path, capsys=capsys)
        assert (code, path.name in err) == (3, True)
