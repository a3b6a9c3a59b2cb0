"""Where the engine keeps what is only there to be fast again."""

import sys
from pathlib import Path

import pytest

from inferometer.caches import cache_folder


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has LOCALAPPDATA")
def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "inferometer"
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # as if it weren't set
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / "home" / ".cache" / "inferometer"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "inferometer"
