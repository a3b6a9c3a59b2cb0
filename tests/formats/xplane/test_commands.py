"""Every command that makes sense of a profile of JAX answers, on both real samples."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.xplane_files import H200, kernel_ps, real_files

COMMANDS = (
    *("summary", "tree", "groups", "timeline", "findings", "roofline", "steps", "calls", "spans"),
    *("launches --by op", "launches --by module", "launches --by span", "kernels --by family"),
)
Printed = pytest.CaptureFixture[str]


@real_files
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers(command: str, path: Path, capsys: Printed) -> None:
    name, *options = command.split()
    code, out, _ = run(name, path, *options, "--json", capsys=capsys)
    assert (code, bool(json.loads(out))) == (0, True)


@real_files
def test_kernels_and_modules_have_the_time_of_a_second_reader(path: Path, capsys: Printed) -> None:
    _, took_ps = kernel_ps(path)
    for name, *options in (["kernels"], ["launches", "--by", "module"]):
        _, out, _ = run(name, path, *options, "--json", capsys=capsys)
        assert json.loads(out)["total_ns"] * 1_000 == took_ps.total()


@real_files
def test_a_profile_becomes_a_store_a_page_a_fleet_and_is_compared(path: Path, tmp_path: Path, capsys: Printed) -> None:
    store, page, fleet = (tmp_path / name for name in ("run.ifm", "run.html", "fleet"))
    for words in (
        ("import", path, "-o", store),
        ("report", store, "-o", page),
        ("mine", store, "-o", fleet, "--workers", 1),
        ("compare", path, store, "--json"),
    ):
        assert run(*words, capsys=capsys)[0] == 0


def test_what_the_host_did_has_a_name_where_xla_gave_it_one(capsys: Printed) -> None:
    _, out, _ = run("findings", H200, capsys=capsys)
    assert "(57.5 %) in ops outside of driver and runtime calls" in " ".join(out.split())
    assert "torch" not in out
