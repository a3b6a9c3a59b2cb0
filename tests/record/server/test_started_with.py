"""Which folder vLLM was started with: from a /proc made by hand."""

import os
from pathlib import Path

import pytest

from inferometer.record.server.started_with import find_profiler_folder

SERVE = ["python", "-m", "vllm.entrypoints.openai.api_server", "--port", "8000"]
CONFIG = '{"profiler": "torch", "torch_profiler_dir": "/traces"}'


def made(root: Path, command: list[str], *environ: str, port: int = 8000) -> Path:
    """A /proc where process 10 listens at 8000, started in /work with this command and environment."""
    (root / "net").mkdir(parents=True)
    (root / "net" / "tcp").write_text(f"sl ...\n0: 0100007F:{port:04X} 00000000:0000 0A 0:0 00:0 0 0 0 71 1")
    process = root / "10"
    (process / "fd").mkdir(parents=True)
    (process / "fd" / "3").symlink_to("socket:[71]")
    (process / "cwd").symlink_to("/work")
    (process / "stat").write_text("10 (python) S 1 0")
    (process / "cmdline").write_bytes(os.fsencode("\0".join([*command, ""])))
    (process / "environ").write_bytes(os.fsencode("\0".join([*environ, ""])))
    return root


@pytest.mark.parametrize(
    ("command", "environ", "folder"),
    [
        ([*SERVE, "--profiler-config", CONFIG], [], "/traces"),
        ([*SERVE, f"--profiler_config={CONFIG}"], [], "/traces"),
        ([*SERVE, "--profiler-config.torch_profiler_dir", "/dotted"], [], "/dotted"),
        ([*SERVE, "--profiler-config.torch_profiler_dir=/dotted"], [], "/dotted"),
        ([*SERVE, "--profiler-config.torch_profiler_dir", "below"], [], "/work/below"),
        (SERVE, ["HOME=/root", "VLLM_TORCH_PROFILER_DIR=/old"], "/old"),
        ([*SERVE, "--profiler-config", CONFIG], ["VLLM_TORCH_PROFILER_DIR=/old"], "/traces"),
        (SERVE, ["VLLM_TORCH_PROFILER_DIR="], None),
        (SERVE, [], None),
        ([*SERVE, "--profiler-config"], [], None),
        ([*SERVE, "--profiler-config", "{torch"], [], None),
        ([*SERVE, "--profiler-config", "[1]"], [], None),
        ([*SERVE, "--profiler-config", '{"torch_profiler_dir": 3}'], [], None),
        ([*SERVE, "--profiler-config", "[" * 100_000], [], None),
        (SERVE, ["VLLM_TORCH_PROFILER_DIR=/caf\udce9"], "/caf\udce9"),
    ],
)
def test_the_process_tells_its_folder(
    command: list[str], environ: list[str], folder: str | None, tmp_path: Path
) -> None:
    found = find_profiler_folder(8000, made(tmp_path / "proc", command, *environ))
    assert found == (None if folder is None else Path(folder))


def test_nothing_is_known_of_what_is_not_seen(tmp_path: Path) -> None:
    root = made(tmp_path / "proc", [*SERVE, "--profiler-config", CONFIG])
    assert find_profiler_folder(8001, root) is None
    assert find_profiler_folder(8000, tmp_path / "none") is None
    (root / "10" / "cwd").unlink()
    assert find_profiler_folder(8000, root) == Path("/traces")
    (root / "10" / "cmdline").unlink()
    assert find_profiler_folder(8000, root) is None
