"""Files that are no workloads: the message says the file, the line and the field."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.bench.exchange.samples import NORM, read_lines, result, run_of

from inferometer.bench.exchange import read_workloads, workloads, write_exchange
from inferometer.bench.exchange.blobs import read_integers
from inferometer.errors import FormatError, InputError


def ours(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A file that we wrote, and what its line says."""
    write_exchange(run_of(result()), folder, force=False)
    path = folder / "workloads/rmsnorm/rms_norm_H64.jsonl"
    return path, read_lines(path)[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "expected a workload at least, found none"),
        (b"\n \n", "expected a workload at least, found none"),
        (b'{"definition": "rmsnorm_h8", "workload"', "x.jsonl:1: Input data was truncated"),
        (b"\x00\xff\xfe", "x.jsonl:1: JSON is malformed"),
        (b"{}\n", "x.jsonl:1: expected a workload, or a trace that has one, found neither"),
        (b"3\n", "x.jsonl:1: Expected `object`, got `int`"),
        (b"[" * 100_000, "x.jsonl:1"),
        (b'{"definition": "rmsnorm_h8", "workload": 3}', "x.jsonl:1: workload: Expected `object"),
        (b'{"definition": "rmsnorm_h8", "workload": {"axes": {}, "inputs": {}}}', "missing required field `uuid`"),
        (b'{"definition": "rmsnorm_h8", "axes": {"batch_size": "3"}}', r"axes\[...\]: Expected `int`, got `str`"),
        (b'{"definition": "rmsnorm_h8", "axes": {"batch_size": -3}}', "axes.batch_size: expected a size, found -3"),
        (b'{"definition": "rmsnorm_h8", "axes": {}}', "axes.batch_size: expected a size, found None"),
        (b'{"definition": "../../x", "axes": {}}', "definition: expected a name"),
        (b'{"definition": "*", "axes": {}}', "definition: expected a name"),
        (b'{"definition": "rmsnorm_h8", "axes": {"batch_size": 3}, "inputs": {"x": {"type": "custom"}}}', "inputs"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_line_that_is_none_is_told(text: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(text)
    with pytest.raises(FormatError, match=reason):
        read_workloads(path)


def test_the_line_is_counted_with_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"definition": "rmsnorm_h8", "axes": {"batch_size": 3}}\r\n\n{"definition": 3}\n')
    with pytest.raises(FormatError, match=r"x\.jsonl:3: definition: Expected `str"):
        read_workloads(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a file of workloads, \.jsonl or \.json"):
        read_workloads(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"none\.jsonl: No such file"):
        read_workloads(tmp_path / "none.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match=r"folder\.jsonl: Is a directory"):
        read_workloads(tmp_path / "folder.jsonl")
    (tmp_path / "definition.json").write_bytes(b'{"name": "x", "axes": {"T": {"type": "var"}}, "reference": "x"}')
    with pytest.raises(FormatError, match=r"definition\.json: axes"):
        read_workloads(tmp_path / "definition.json")


def test_links_that_go_round_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.symlink_to("w.jsonl")
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        read_workloads(path)
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        read_integers(tmp_path, "w.jsonl", "x", where="w")


def test_a_huge_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_LARGEST", 10)
    (tmp_path / "x.jsonl").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="expected at most 10 bytes, found more"):
        read_workloads(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"operator": "rms_nrom"}, 'inferometer.operator: unknown operator "rms_nrom"'),
        ({"operator": 3}, r"workload\.inferometer\.operator: Expected `str`"),
        ({"args": {"token_count": 5}}, "inferometer.args: rms_norm: argument hidden_size is missing"),
        ({"args": {**NORM, "token_count": 6}}, "axes.T: expected 6 as the arguments have it, found 5"),
        ({"args": {**NORM, "eps": "x"}}, "inferometer.args: rms_norm: argument eps"),
    ],
)
def test_our_own_field_is_not_believed_blindly(field: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path, line = ours(tmp_path)
    line["workload"]["inferometer"] |= field
    path.write_bytes(msgspec.json.encode(line))
    with pytest.raises(FormatError, match=rf"rms_norm_H64\.jsonl:1: .*{reason}"):
        read_workloads(path)


def test_labels_have_no_control_characters(tmp_path: Path) -> None:
    path, line = ours(tmp_path)
    line["workload"]["inferometer"]["shape"] = "\x1b[31mred"
    path.write_bytes(msgspec.json.encode(line))
    assert read_workloads(path)[0].shapes[0][0] == r"\x1b[31mred"


def test_a_definition_of_another_name_is_told(tmp_path: Path) -> None:
    path, line = ours(tmp_path)
    del line["workload"]["inferometer"]
    path.write_bytes(msgspec.json.encode(line))
    definition = tmp_path / "definitions/rmsnorm/rms_norm_H64.json"
    definition.write_bytes(definition.read_bytes().replace(b'"name": "rms_norm_H64"', b'"name": "other"'))
    with pytest.raises(FormatError, match='name: expected "rms_norm_H64", found "other"'):
        read_workloads(path)
    definition.write_bytes(b"{}")
    with pytest.raises(FormatError, match=r"rms_norm_H64\.json: Object missing required field"):
        read_workloads(path)
