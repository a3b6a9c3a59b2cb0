"""Paths that a client gives: which lead out of the roots, and that a refusal says nothing of what is there."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.commands.tools.roots import Roots
from inferometer.errors import InputError

OUTSIDE = "outside the folders that this server may read"
needs_links = pytest.mark.skipif(os.name == "nt", reason="needs links that anybody may make")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`root/a.json` and `root/runs/b.json`, next to `secret.json` and `rooted/c.json`."""
    for name in ("root/a.json", "root/runs/b.json", "secret.json", "rooted/c.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path / "root"


@pytest.mark.parametrize("given", ["a.json", "./runs/../a.json", "runs/b.json", "runs", ".", "", "{root}/a.json"])
def test_a_path_in_a_root_is_resolved(given: str, root: Path) -> None:
    path = given.format(root=root)
    assert Roots([str(root)]).find(path).path == os.path.realpath(root / path)


@pytest.mark.parametrize(
    "given",
    [
        *("../secret.json", "runs/../../secret.json", "{root}/../secret.json", "/etc/passwd", "/", "//etc/passwd"),
        *("../rooted/c.json", "../absent.json", "a.json/../../secret.json", "{root}ed/c.json", "/proc/self/environ"),
    ],
)
def test_a_path_out_of_the_roots_is_refused(given: str, root: Path) -> None:
    with pytest.raises(InputError, match=OUTSIDE):
        Roots([str(root)]).find(given.format(root=root))


def test_a_refusal_says_the_same_whether_the_file_is_there_or_not(root: Path) -> None:
    messages = set()
    for name in ("secret.json", "absent.json"):
        with pytest.raises(InputError) as refused:
            Roots([str(root)]).find(f"../{name}")
        messages.add(str(refused.value).replace(name, "NAME"))
    assert len(messages) == 1


@needs_links
@pytest.mark.parametrize("target", ["../secret.json", "../absent.json", "/etc", ".."])
def test_a_link_out_of_the_roots_is_refused(target: str, root: Path) -> None:
    (root / "link").symlink_to(target)
    with pytest.raises(InputError, match=f"link: {OUTSIDE}"):
        Roots([str(root)]).find("link")


@needs_links
def test_a_link_within_the_roots_is_followed(root: Path) -> None:
    (root / "link").symlink_to("runs/b.json")
    assert Roots([str(root)]).find("link").path == os.path.realpath(root / "runs/b.json")


@needs_links
def test_a_folder_that_holds_a_link_out_of_the_roots_is_refused(root: Path) -> None:
    (root / "runs" / "deep").mkdir()
    (root / "runs" / "deep" / "link").symlink_to("../../../secret.json")
    with pytest.raises(InputError, match="runs: holds a link that leads outside"):
        Roots([str(root)]).find("runs")


@needs_links
def test_links_in_a_circle_end(root: Path) -> None:
    (root / "runs" / "up").symlink_to("..")
    (root / "self").symlink_to("self")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    roots = Roots([str(root)])
    assert roots.find("runs").path == os.path.realpath(root / "runs")
    assert roots.find("self").state == ()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(InputError, match="expected a file or a folder, found a pipe or a device"):
        Roots([str(root)]).find("pipe")


@pytest.mark.parametrize("given", ["a\0b", "\ud800.json"])
def test_what_can_t_be_a_path_is_refused(given: str, root: Path) -> None:
    with pytest.raises(InputError, match="expected a path, found what can't be one"):
        Roots([str(root)]).find(given)


def test_a_relative_path_counts_from_the_first_root_that_has_it(root: Path) -> None:
    roots = Roots([str(root), str(root.parent / "rooted")])
    assert roots.find("c.json").path == os.path.realpath(root.parent / "rooted/c.json")
    assert roots.find("absent.json").path == os.path.realpath(root / "absent.json")
    assert roots.find("../rooted/c.json").path == os.path.realpath(root.parent / "rooted/c.json")


def test_a_dash_is_a_file_and_not_standard_input(root: Path) -> None:
    assert Roots([str(root)]).find("-").path == os.path.realpath(root / "-")


def test_the_state_changes_with_the_file_and_with_a_file_of_the_folder(root: Path) -> None:
    roots = Roots([str(root)])
    before = [roots.find("a.json").state, roots.find("runs").state]
    assert before == [roots.find("a.json").state, roots.find("runs").state]
    (root / "a.json").write_text("{ }")
    (root / "runs/b.json").write_text("{ }")
    after = [roots.find("a.json").state, roots.find("runs").state]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False]


@pytest.mark.parametrize("name", ["absent", "a.json", "a\0b"])
def test_a_root_is_a_folder(name: str, root: Path) -> None:
    with pytest.raises(InputError, match="expected a folder to read from, found none"):
        Roots([str(root / name)])


PARTS = st.sampled_from(["..", ".", "a.json", "runs", "link", "", "ü", "~", "\\", "%2e%2e", "rooted", "root", "up"])


@pytest.fixture(scope="module")
def linked() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        (top / "root" / "runs").mkdir(parents=True)
        (top / "rooted").mkdir()
        (top / "root" / "a.json").write_text("{}")
        if os.name != "nt":
            (top / "root" / "link").symlink_to("../rooted")
            (top / "root" / "runs" / "up").symlink_to("../..")
        yield top / "root"


@given(parts=st.lists(PARTS, max_size=8), absolute=st.booleans())
def test_no_path_leads_out(parts: list[str], absolute: bool, linked: Path) -> None:
    path = "/".join([str(linked)] * absolute + parts)
    try:
        found = Roots([str(linked)]).resolve(path)
    except InputError:
        return
    assert Path(found).resolve().is_relative_to(linked)
