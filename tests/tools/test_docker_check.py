"""What runs the Dockerfile without Docker reads it as Docker does, and refuses what it can't run."""

import re
from pathlib import Path

import pytest
from tools.docker_check import DockerfileError, Stage, _apply, base_of, build, instructions, main

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_lines_are_joined_and_comments_left_out() -> None:
    text = '# a\nFROM x AS y\nRUN one \\\n    # between\n    && two\n\ncmd ["--help"]\n'
    assert list(instructions(text)) == [("FROM", "x AS y"), ("RUN", "one && two"), ("CMD", '["--help"]')]


def test_the_base_image_is_pinned_by_its_digest_and_one_that_can_be_made() -> None:
    images = [rest.partition(" AS ")[0] for name, rest in instructions(DOCKERFILE) if name == "FROM"]
    assert len(images) == 2
    assert len(set(images)) == 1
    assert re.search(r"@sha256:[0-9a-f]{64}$", images[0])
    assert base_of(images[0]) == ("3.12", "bookworm")


@pytest.mark.parametrize("image", ["alpine:3", "python:3.12", "python:3.12-slim-bookworm@sha256:12", "scratch", ""])
def test_another_base_image_is_refused(image: str) -> None:
    with pytest.raises(DockerfileError, match="expected python:VERSION-slim-DEBIAN"):
        base_of(image)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = [
        source
        for name, rest in instructions(DOCKERFILE)
        if name == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    ]
    assert len(copied) == 7
    assert all((ROOT / source).exists() and f"!{source}" in ignored for source in copied)


def test_instructions_change_the_stage_as_docker_says(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for name, rest in (
        *(("ARG", 'EXTRAS="mcp"'), ("ENV", "PATH=/opt/bin:$PATH"), ("ENV", "HOME=/root/${EXTRAS}x"), ("USER", "me")),
        *(("WORKDIR", "/work"), ("ENTRYPOINT", '["inferometer"]'), ("CMD", '["--help"]')),
    ):
        _apply(name, rest, stage, {}, ROOT)
    assert stage.arguments == {"EXTRAS": "mcp"}
    assert stage.environment["PATH"].startswith("/opt/bin:/usr/local/bin:")
    assert (stage.user, stage.folder) == ("me", "/work")
    assert (tmp_path / "work").is_dir()
    assert (*stage.entry, *stage.words) == ("inferometer", "--help")
    assert stage.inside("a/b") == tmp_path / "work/a/b"
    assert stage.inside("/etc/../../x") == tmp_path / "x", "nothing lies outside"


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "expected FROM"), ("RUN true", "RUN before FROM"), ("# only\n", "expected FROM"), ("FROM ubuntu", "ubuntu")],
)
def test_what_is_no_dockerfile_of_ours_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DockerfileError, match=said):
        build(text, tmp_path, tmp_path)


def test_an_unknown_instruction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DockerfileError, match="ADD: an instruction"):
        _apply("ADD", "x y", Stage(tmp_path), {}, ROOT)


def test_without_a_python_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 4
    assert "docker-check: " in capsys.readouterr().err
