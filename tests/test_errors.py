"""The tree of errors: exit codes, what users see, and the way from a worker process back."""

import pickle

import pytest

from inferometer.errors import FormatError, InferometerError, InputError, Unavailable, UnknownName


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (InferometerError("a bug"), 70),
        (InputError("bad input"), 3),
        (FormatError("bad file"), 3),
        (UnknownName("format", "kinteo", ["kineto"]), 3),
        (Unavailable("no device"), 4),
    ],
)
def test_every_class_has_its_exit_code(error: InferometerError, exit_code: int) -> None:
    assert error.exit_code == exit_code
    assert isinstance(error, InferometerError)


def test_the_hint_stands_below_the_message_indented_by_two_spaces() -> None:
    error = FormatError(
        'run7.json.gz: traceEvents[1042].dur: expected microseconds, found "12us"', hint="Export it again."
    )
    assert str(error) == 'run7.json.gz: traceEvents[1042].dur: expected microseconds, found "12us"\n  Export it again.'


def test_every_line_of_a_hint_is_indented() -> None:
    assert str(Unavailable("no GPU", hint="Install a driver,\nor use --device cpu.")).splitlines() == [
        "no GPU",
        "  Install a driver,",
        "  or use --device cpu.",
    ]


def test_without_a_hint_the_message_is_all() -> None:
    assert str(InputError("no such file: a.json")) == "no such file: a.json"


def test_an_unknown_name_lists_the_known_ones_nearest_first() -> None:
    error = UnknownName("format", "Kinteo", ["nsys-sqlite", "chrome", "kineto"])
    assert str(error).splitlines()[0] == 'unknown format "Kinteo"'
    assert error.known[0] == "kineto"
    assert sorted(error.known) == ["chrome", "kineto", "nsys-sqlite"]
    assert str(error).splitlines()[1] == f"  Known, nearest first: {', '.join(error.known)}"


def test_equally_near_names_are_listed_by_the_alphabet() -> None:
    assert UnknownName("unit", "x", ["b", "a", "c"]).known == ("a", "b", "c")


def test_an_unknown_name_says_when_nothing_is_known() -> None:
    assert str(UnknownName("backend", "triton", [])) == 'unknown backend "triton"\n  No backend is known here.'


@pytest.mark.parametrize(
    "error", [InputError("bad", hint="do this"), UnknownName("format", "kinteo", ["kineto", "csv"])]
)
def test_errors_survive_the_way_between_processes(error: InferometerError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_what_a_hostile_file_puts_into_a_message_drives_no_terminal() -> None:
    error = FormatError("a\x1b[2J\u202e.json: x", hint="see \x1b]8;;http://x\x07this\nand\x9b that\u2028")
    assert str(error) == "a\\x1b[2J\\u202e.json: x\n  see \\x1b]8;;http://x\\x07this\n  and\\x9b that "
    assert "\x1b" in error.message


def test_a_line_of_a_message_has_an_end() -> None:
    lines = str(UnknownName("format", "x" * 200_000, ["kineto"])).splitlines()
    assert len(lines[0]) < 5_000
    assert lines[0].startswith('unknown format "xxx')
    assert lines[1] == "  Known, nearest first: kineto"
