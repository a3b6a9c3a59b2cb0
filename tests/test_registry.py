"""The registry on small packages made for each test: what it finds, what it refuses, what plugins can't break."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inferometer import registry
from inferometer.errors import InferometerError, UnknownName
from inferometer.registry import PluginWarning, collect, find

THING = "from types import SimpleNamespace\nTHING = SimpleNamespace(name={name!r})\n"


class Site:
    """A folder on `sys.path` to which packages and plugins are written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = f"things_of_{abs(hash(root))}"
        self.module("__init__", "")

    def module(self, name: str, text: str) -> None:
        path = self.root / self.package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def plugin(self, text: str) -> None:
        """Write another distribution, `visiting`, whose module declares THING as an entry point."""
        visitor = f"{self.package}_visitor"
        (self.root / f"{visitor}.py").write_text(text)
        info = self.root / "visiting-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: visiting\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{self.package}]\nguest = {visitor}:THING\n")

    def collect(self, **options: Any) -> dict[str, Any]:
        return collect(self.package, "THING", **options)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(tmp_path)
    registry._collect.cache_clear()
    yield Site(tmp_path)
    registry._collect.cache_clear()


def test_modules_and_subpackages_are_found_sorted_by_name(site: Site) -> None:
    site.module("one", THING.format(name="zebra"))
    site.module("two/__init__", THING.format(name="ape"))
    site.module("two/inside", THING.format(name="too deep to be found"))
    assert list(site.collect()) == ["ape", "zebra"]


def test_modules_without_the_constant_and_private_ones_are_passed_over(site: Site) -> None:
    site.module("one", THING.format(name="ape"))
    site.module("intervals", "OTHER = 1\n")
    site.module("_draft", "raise AssertionError('a private module must not be imported')\n")
    assert list(site.collect()) == ["ape"]


def test_a_module_is_imported_once_and_the_answer_is_a_copy(site: Site) -> None:
    site.module("one", THING.format(name="ape"))
    first = site.collect()
    first.clear()
    assert list(site.collect()) == ["ape"]
    assert site.collect()["ape"] is site.collect()["ape"]


def test_two_modules_with_one_name_are_refused_naming_both(site: Site) -> None:
    site.module("one", THING.format(name="ape"))
    site.module("two", THING.format(name="ape"))
    with pytest.raises(InferometerError, match=r'two\.THING: the name "ape" is already taken by .*one\.THING'):
        site.collect()


@pytest.mark.parametrize("text", ["THING = 3\n", THING.format(name="")])
def test_an_object_without_a_name_is_refused(site: Site, text: str) -> None:
    site.module("one", text)
    with pytest.raises(InferometerError, match=r"one\.THING: expected an object with a name"):
        site.collect()


def test_a_broken_module_of_ours_raises(site: Site) -> None:
    site.module("one", "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        site.collect()


def test_a_missing_package_raises() -> None:
    with pytest.raises(ModuleNotFoundError):
        collect("inferometer.no_such_room", "THING")


def test_entry_points_of_other_packages_are_added(site: Site) -> None:
    site.module("one", THING.format(name="zebra"))
    site.plugin(THING.format(name="ape"))
    assert list(site.collect()) == ["ape", "zebra"]
    assert list(site.collect(group="another.group")) == ["zebra"]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
        ("THING = 3\n", "expected an object with a name, found int"),
        ("", "AttributeError"),
        (THING.format(name="zebra"), 'the name "zebra" is already taken'),
    ],
)
def test_a_broken_plugin_is_left_out_with_a_warning_that_names_it(site: Site, text: str, cause: str) -> None:
    site.module("one", THING.format(name="zebra"))
    site.plugin(text)
    with pytest.warns(PluginWarning, match="left out plugin guest = .*_visitor:THING") as caught:
        assert list(site.collect()) == ["zebra"]
    message = str(caught[0].message)
    assert "of visiting" in message
    assert cause in message


def test_one_is_found_by_its_module_and_no_other_module_is_imported(site: Site) -> None:
    site.module("one", THING.format(name="ape"))
    site.module("two/__init__", "")
    site.module("two/inside", THING.format(name="yak"))
    site.module("broken", "raise AssertionError('nobody asked for this module')\n")
    assert [find(site.package, "THING", name).name for name in ("one", "two.inside")] == ["ape", "yak"]


def test_one_of_another_package_is_found_by_its_entry_point(site: Site) -> None:
    site.module("__init__", "")
    site.plugin(THING.format(name="emu"))
    assert find(site.package, "THING", "guest").name == "emu"


def test_one_that_is_nowhere_is_unknown(site: Site) -> None:
    site.module("one", THING.format(name="ape"))
    with pytest.raises(UnknownName, match='unknown thing "ore"'):
        find(site.package, "THING", "ore")
