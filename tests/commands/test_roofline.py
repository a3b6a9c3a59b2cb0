"""`roofline`, and `kernels` with bounds or by arguments, as users call them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tests.conftest import SHARED_DATA

SAMPLES = Path(__file__).parents[2] / "samples"
DECODE = str(SAMPLES / "decode.json.gz")
GRAPH, EAGER = (str(SAMPLES / "h200" / f"kineto_{name}.json.gz") for name in ("graph", "eager"))
ROW = (
    *("op", "input_dims", "input_dtypes", "calls", "launches", "total_ns", "flops", "read_bytes", "write_bytes"),
    *("bound_ns", "binding", "fraction", "reason"),
)


Capsys = pytest.CaptureFixture[str]


def data_of(capsys: Capsys, *arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json", capsys=capsys)
    assert (code, err) == (0, "")
    data: dict[str, Any] = json.loads(out)
    return data


def test_the_json_has_what_was_promised_and_times_add_up(capsys: Capsys) -> None:
    data = data_of(capsys, "roofline", DECODE)

    assert {"source", "hardware", "total_ns", "modelled_ns", "bound_ns", "rows"} <= data.keys()
    assert all(set(ROW) <= row.keys() for row in data["rows"])
    assert data["hardware"] == "H100 SXM"
    assert sum(row["total_ns"] for row in data["rows"]) == data["total_ns"]
    modelled = [row for row in data["rows"] if row["reason"] is None]
    assert sum(row["total_ns"] for row in modelled) == data["modelled_ns"]
    assert sum(row["bound_ns"] for row in modelled) == pytest.approx(data["bound_ns"])
    for row in modelled:
        assert row["fraction"] == pytest.approx(row["bound_ns"] / row["total_ns"])
    for row in data["rows"]:
        assert row["reason"] is None or row["flops"] is row["bound_ns"] is row["fraction"] is None


def test_sentences_state_what_the_numbers_are(capsys: Capsys) -> None:
    data = data_of(capsys, "roofline", DECODE)
    text = " ".join(data["remarks"])

    sized, of_sized = data["sized_modelled_ns"], data["sized_ns"]
    share = f"{100 * sized / of_sized:.1f} %"
    assert f"Of kernels whose op and sizes are recorded it is {share}: {sized / 1e6:.3f} ms of" in text
    first = max((row for row in data["rows"] if row["reason"] is None), key=lambda row: row["above_ns"])
    above = sum(row["above_ns"] or 0 for row in data["rows"])
    assert (
        f"{data['modelled_ns'] / data['total_ns']:.1%}".replace("%", " %") + " of the device time is modelled" in text
    )
    assert f"{data['bound_ns'] / data['modelled_ns']:.1%}".replace("%", " %") + " is reached" in text
    assert (
        f"{first['above_ns'] / above:.1%}".replace("%", " %")
        + f" of the time above the bounds is in {first['calls']} calls of {first['op']}"
        in text
    )


def test_another_device_has_another_bound_and_the_same_times(capsys: Capsys) -> None:
    here, there = (
        data_of(capsys, "roofline", DECODE),
        data_of(capsys, "roofline", DECODE, "--hardware", "A100 SXM 80GB"),
    )

    assert there["hardware"] == "A100 SXM 80GB"
    assert there["total_ns"] == here["total_ns"]
    assert there["bound_ns"] > here["bound_ns"]


def test_an_eager_run_tells_the_ops_of_a_graphs_replay(capsys: Capsys) -> None:
    alone, with_run = data_of(capsys, "roofline", GRAPH), data_of(capsys, "roofline", GRAPH, "--capture", EAGER)

    assert alone["modelled_ns"] < 0.05 * alone["total_ns"]
    assert any("--capture" in (row["reason"] or "") for row in alone["rows"])
    assert with_run["modelled_ns"] > 0.8 * with_run["total_ns"]
    assert any("capture" in remark for remark in with_run["remarks"])


def test_kernels_show_bounds_and_the_same_times(capsys: Capsys) -> None:
    plain, bounded = data_of(capsys, "kernels", DECODE), data_of(capsys, "kernels", DECODE, "--roofline")

    assert {row["kernel"]: row["total_ns"] for row in bounded["rows"] if "Mem" not in row["kernel"]} == {
        row["kernel"]: row["total_ns"] for row in plain["rows"]
    }
    assert sum(row["bound_ns"] or 0 for row in bounded["rows"]) == pytest.approx(
        data_of(capsys, "roofline", DECODE)["bound_ns"]
    )


def test_unique_arguments_as_csv(capsys: Capsys) -> None:
    code, out, _ = run("kernels", DECODE, "--by", "op-args", "--csv", "--match", "mm$", "--top", "3", capsys=capsys)
    rows = list(csv.DictReader(io.StringIO(out)))

    assert code == 0
    assert [row["op"] for row in rows] == ["aten::mm"] * 3
    for row in rows:
        (m, k), (_, n) = json.loads(row["input_dims"])
        assert int(row["flops"]) == 2 * m * n * k
        assert json.loads(row["input_strides"])[1] == [1, k]  # a transposed weight
        assert float(row["flops_per_s"]) == pytest.approx(
            int(row["flops"]) * int(row["calls"]) / int(row["total_ns"]) * 1e9
        )


def test_terminal_and_markdown_show_it(capsys: Capsys) -> None:
    for form in ((), ("--markdown",)):
        code, out, _ = run("roofline", DECODE, "--top", "2", *form, capsys=capsys)
        assert code == 0
        assert "aten::mm" in out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--hardware", "A100"), 3, "may be several devices"),
        (("--hardware", "Gaudi 9"), 3, "Gaudi 9"),
        (("--hardware", "H100 SXM", "--hardware-file", "x.json"), 2, "mutually exclusive"),
        (("--hardware-file", "no-such.json"), 3, "no-such.json"),
        (("--context", "0"), 2, "--context"),
        (("--window", "-3"), 2, "--window"),
        (("--capture", "no-such.json"), 3, "no-such.json"),
        (("--top", "0"), 2, "--top"),
        (("--output-code", "no-such.py"), 3, "no-such.py"),
        (("--output-code", str(SAMPLES / "README.md")), 3, "Triton kernels"),
    ],
)
def test_what_cannot_be_asked_for_says_why(args: tuple[str, ...], code: int, words: str, capsys: Capsys) -> None:
    found, _, err = run("roofline", DECODE, *args, capsys=capsys)

    assert found == code
    assert words in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--roofline", "--by", "short"), "mutually exclusive"),
        (("--roofline", "--raw"), "fit"),
        (("--by", "op-args", "--sort", "count"), "fit"),
        (("--capture", EAGER), "--capture needs"),
        (("--hardware", "H100 SXM"), "--hardware needs"),
    ],
)
def test_kernels_refuses_what_does_not_go_together(args: tuple[str, ...], words: str, capsys: Capsys) -> None:
    code, _, err = run("kernels", DECODE, *args, capsys=capsys)

    assert code == 2
    assert words in " ".join(err.split())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"traceEvents": []}', b"\x1f\x8b\x08broken"])
def test_files_without_launches_are_no_traceback(content: bytes, tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)

    code, out, err = run("roofline", str(path), capsys=capsys)

    assert code in (0, 3)
    assert "Traceback" not in err
    assert code == 3 or "No launches" in out


COMPILED = """
import triton
from torch._inductor.runtime import triton_heuristics
import triton.language as tl
raise SystemExit("this file is never run")

@triton_heuristics.pointwise(
    triton_meta={'signature': {'in_out_ptr0': '*fp32', 'in_ptr0': '*fp32', 'in_ptr1': '*fp32', 'xnumel': 'i32'}},
)
@triton.jit
def triton_poi_fused_add_cos_sin_0(in_out_ptr0, in_ptr0, in_ptr1, xnumel, XBLOCK : tl.constexpr):
    xnumel = 100
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask)
    tmp2 = tl.load(in_out_ptr0 + (x0), xmask)
    tl.store(in_out_ptr0 + (x0), tmp2, xmask)
"""


def test_the_source_that_a_trace_names_says_what_a_compiled_kernel_moves(tmp_path: Path, capsys: Capsys) -> None:
    trace = SHARED_DATA / "traces" / "kineto" / "triton_example.json.gz"
    if not trace.exists():
        pytest.skip("needs ../shared/data")
    (tmp_path / "cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu.py").write_text(COMPILED)

    with_code = data_of(capsys, "roofline", str(trace), "--output-code", str(tmp_path))
    without = data_of(capsys, "roofline", str(trace))

    [row], [plain] = ([row for row in data["rows"] if "triton" in (row["op"] or "")] for data in (with_code, without))
    assert (row["read_bytes"], row["write_bytes"]) == (1200, 400)  # three tensors of 10 x 10 floats, one of them twice
    assert (plain["read_bytes"], plain["write_bytes"]) == (800, 400)
    assert (row["vector_flops"], row["special_ops"]) == (100, 200)
    assert row["kernel_file"].endswith("/cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu.py")
    assert row["total_ns"] == plain["total_ns"] == 1760
