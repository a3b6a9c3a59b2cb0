"""`inferometer names decode` as users meet it."""

import json

import pytest
from tests.commands.test_command_line import run, run_apart

NVJET = "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT"
KEYS = ("name", "library", "family", "dtype", "tile_m", "tile_n", "tile_k", "stages", "split_k", "arch", "short_name")


def test_the_table_shows_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("names", "decode", NVJET, "matmul:ffn_up:L0", capsys=capsys)
    assert (code, err) == (0, "")
    for words in ("Short name", "128x112x64", "cublas", "ffn_up", "webgpu"):
        assert words in out


def test_json_has_the_names_in_the_order_given(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("names", "decode", "--json", "rope", NVJET, "rope", capsys=capsys)
    data = json.loads(out)["names"]
    assert [row["name"] for row in data] == ["rope", NVJET, "rope"]
    assert all(set(KEYS) <= set(row) for row in data)
    assert (data[1]["tile_m"], data[1]["split_k"], data[1]["arch"]) == (128, "yes", None)
    assert data[1]["evidence"] == {"rule": "nvjet", "mark": "V"}


@pytest.mark.parametrize("words", [(), ("-",)])
def test_names_come_one_a_line_from_standard_input(words: tuple[str, ...]) -> None:
    text = (
        f"\ufeff{NVJET}\r\n\n  \nvoid vllm::rms_norm_kernel<c10::Half>(int)\nn\u00e9 \u202e\x00\n".encode()
        + b"\xff\xfe"
    )
    done = run_apart("names", "decode", "--json", *words, stdin=text)
    assert done.returncode == 0
    names = [row["name"] for row in json.loads(done.stdout)["names"]]
    assert names[:3] == [NVJET, "void vllm::rms_norm_kernel<c10::Half>(int)", "n\u00e9 \u202e\x00"]
    assert len(names) == 4


def test_no_names_are_an_empty_answer() -> None:
    done = run_apart("names", "decode", "--json", stdin=b"")
    assert (done.returncode, json.loads(done.stdout)["names"]) == (0, [])
    assert run_apart("names", "decode", stdin=b"").stdout == b"Kernel names: none\n"


def test_csv_has_one_line_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("names", "decode", "--csv", NVJET, "scale", capsys=capsys)
    lines = out.splitlines()
    assert lines[0].startswith("Short name,Library,Family,Type,Tile")
    assert len(lines) == 3


def test_control_characters_never_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("names", "decode", "a\x1b[31mb\u202ec", capsys=capsys)
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_an_unknown_action_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("names", "guess", "x", capsys=capsys)
    assert (code, out) == (2, "")
    assert "decode" in err


def test_a_hundred_thousand_lines_are_quick() -> None:
    text = "".join(f"nvjet_tst_{i % 500}x64_64x8_1x2_h_bz_TNT\n" for i in range(100_000)).encode()
    done = run_apart("names", "decode", "--json", stdin=text)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["names"]) == 100_000
