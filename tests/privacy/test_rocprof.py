"""A token in the command line and the environment of a run on AMD: in the file, and in nothing that is made of it."""

from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.rocprof_files import SMALL, small_runs, write_small
from tools.rocprof_maker.rocpd_file import write_rocpd

_LEFT_OUT = (SMALL.token, "serve.py", "/usr/bin")


@pytest.fixture(params=["json", "db"])
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"run.{request.param}"
    write_small(path) if request.param == "json" else write_rocpd(small_runs(), SMALL, path)
    return path


def test_no_output_holds_the_token(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SMALL.token.encode() in profile.read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    for words in (
        ["summary", profile],
        ["summary", profile, "--json"],
        ["kernels", profile, "--json"],
        ["timeline", profile, "--json"],
        ["report", profile, "-o", out / "page.html"],
        ["import", profile, "-o", out / "store.ifm"],
        ["export", profile, "--to", "perfetto", "-o", out / "a.pftrace"],
        ["export", profile, "--to", "chrome", "-o", out / "a.json"],
    ):
        code, text, errors = run(*words, capsys=capsys)
        assert code == 0, errors
        assert not [each for each in _LEFT_OUT if each in text + errors]
    made = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    assert len(made) > 3
    assert not [each for each in _LEFT_OUT for data in made if each.encode() in data]
