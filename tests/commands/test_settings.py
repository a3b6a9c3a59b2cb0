"""Settings of a folder: what they may hold, which goes first, and what is refused with its place."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import kernel, write_file

from inferometer.commands.base import asked_detail
from inferometer.commands.main import _commands, cli
from inferometer.commands.settings import VARIABLE, find_settings, use_settings
from inferometer.samples import SAMPLES

SLOW = Path(__file__).parents[2] / "samples" / "slow"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in another one, where we are."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    inside = tmp_path / "project" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    return inside


def kernels(*words: str, capsys: pytest.CaptureFixture[str]) -> int:
    """How many rows are shown."""
    code, out, err = run("kernels", "sample:decode", "--json", *words, capsys=capsys)
    assert (code, err) == (0, "")
    return len(json.loads(out)["rows"])


def test_the_nearest_file_sets_what_isnt_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "pyproject.toml").write_text("[tool.inferometer.kernels]\ntop = 3\n")
    assert kernels(capsys=capsys) == 3
    assert kernels("--top", "2", capsys=capsys) == 2
    (folder / "pyproject.toml").write_text("[project]\nname = 'without ours'\n")
    assert kernels(capsys=capsys) == 3
    (folder / "inferometer.toml").write_text("top = 5\n[kernels]\ntop = 4\n")
    assert kernels(capsys=capsys) == 4
    (folder / "inferometer.toml").write_text("[kernels]\ntop = 4\n[steps]\n")
    assert kernels(capsys=capsys) == 4


def test_a_variable_names_another_file_or_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text("top = 5\n")
    monkeypatch.setenv(VARIABLE, "")
    assert kernels(capsys=capsys) == 25
    (folder / "other.toml").write_text("top = 6\n")
    monkeypatch.setenv(VARIABLE, "other.toml")
    assert kernels(capsys=capsys) == 6
    monkeypatch.setenv(VARIABLE, "gone.toml")
    code, _, err = run("kernels", "sample:decode", capsys=capsys)
    assert (code, err.splitlines()[0]) == (3, "error: gone.toml: No such file or directory")


def test_a_device_for_all_is_no_option_that_was_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kernels` refuses --hardware without bounds, `operators` refuses it beside a file."""
    (folder / "inferometer.toml").write_text('hardware = "H200"\n')
    assert kernels(capsys=capsys) == 25
    code, out, _ = run("operators", "--json", capsys=capsys)
    assert (code, json.loads(out)["device"]) == (0, "H200 SXM")
    assert run("kernels", "sample:decode", "--hardware", "H200", capsys=capsys)[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        *(("summary", "sample:decode"), ("findings", "sample:decode"), ("roofline", "sample:decode")),
        *(
            ("compare", "sample:normal", "sample:slow"),
            ("compare", f"{SLOW}/normal", f"{SLOW}/abnormal", "--published"),
        ),
        *(("report", "sample:decode", "-o", "report.html"), ("kernels", "sample:decode", "--roofline")),
        ("kernels", "sample:webgpu"),
    ],
)
def test_every_command_takes_a_device_for_all(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text('hardware = "H100 SXM"\n')
    assert run(*words, capsys=capsys)[0] == 0


def test_a_terminal_has_the_theme_of_the_file(folder: Path) -> None:
    (folder / "inferometer.toml").write_text('theme = "light"\n')
    settings = find_settings(_commands)
    assert settings is not None
    with click.Context(cli) as outer:
        assert asked_detail().theme == "auto"
        use_settings(settings, outer)
        with click.Context(_commands()["kernels"], parent=outer):
            assert asked_detail().theme == "light"


def test_columns_are_those_of_the_file(folder: Path) -> None:
    (folder / "inferometer.toml").write_text("columns = 160\n")
    settings = find_settings(_commands)
    assert settings is not None
    assert settings.columns == 160


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[kernels\n", "inferometer.toml: this is no TOML: "),
        ("\x00", "inferometer.toml: this is no TOML: "),
        ("#" * (1 << 20) + "\n", "inferometer.toml: expected at most 1 MiB of settings"),
        ("mach = 'a'", "inferometer.toml: no command has option 'mach' that can be set; did you mean 'match'?"),
        ("[kernel]\ntop = 3", "inferometer.toml: there is no command 'kernel'; did you mean 'kernels'?"),
        ("[kernels]\nhz = 3", "inferometer.toml, kernels: the command has no option 'hz' that can be set"),
        ("[kernels]\ntop = 'many'", "inferometer.toml, kernels: top: 'many' is not a valid integer range."),
        ("[kernels]\ntop = 0", "inferometer.toml, kernels: top: 0 is not in the range x>=1."),
        ("[kernels]\nmatch = ['a', 'b']", "inferometer.toml, kernels: match: expected one value, found a list"),
        ("[record]\noutput = 'x.ifm'", "inferometer.toml, record: the command has no option 'output' that can be set"),
        (
            "[bench]\ncandidate = 'x.py'",
            "inferometer.toml, bench: the command has no option 'candidate' that can",
        ),
        ("[record]\nserver = 'x'", "inferometer.toml, record: the command has no option 'server' that can be set"),
        ("[serve]\nhost = '0.0.0.0'", "inferometer.toml, serve: the command has no option 'host' that can be set"),
        ("[serve]\nkeep = '.'", "inferometer.toml, serve: the command has no option 'keep' that can be set"),
        (
            "[serve]\ntoken = 'aaaaaaaaaaaaaaaa'",
            "inferometer.toml, serve: the command has no option 'token' that can be set",
        ),
        ("[mcp]\nroot = '/'", "inferometer.toml, mcp: the command has no option 'root' that can be set"),
        ("columns = -1", "inferometer.toml: columns: expected a whole number above 0, found -1"),
        ("columns = true", "inferometer.toml: columns: expected a whole number above 0, found True"),
        (
            "theme = 'drak'",
            "inferometer.toml: theme: expected one of auto, light, dark, none, found 'drak'; did you mean",
        ),
        ("theme = ['dark']", "inferometer.toml: theme: expected one of auto, light, dark, none, found ['dark']"),
        ("thresholds = 3", "inferometer.toml: thresholds: expected a table, found 3"),
        (
            "[thresholds]\nidle_devise.low = 0.1",
            "inferometer.toml, thresholds: there is no threshold 'idle_devise.low'; did you mean 'idle_device.low'?",
        ),
        (
            "[thresholds.idle_device]\nlow = 20",
            "inferometer.toml, thresholds: idle_device.low: expected a share of time from 0 to 1, found 20",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    folder: Path, text: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text(text)
    code, out, err = run("kernels", "sample:decode", capsys=capsys)
    assert (code, out) == (3, "")
    assert err.startswith(f"error: {folder}/{error}")


def test_a_file_that_is_no_text_says_where_and_how_to_go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "inferometer.toml").write_bytes(b"top\xff")
    code, _, err = run("kernels", "sample:decode", capsys=capsys)
    assert code == 3
    assert "this is no TOML: byte 3 is not UTF-8" in err
    assert "INFEROMETER_CONFIG" in err


def test_a_projects_file_may_be_larger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text("#" * (1 << 20) + "\n[tool.inferometer.kernels]\ntop = 3\n")
    code, out, _ = run("kernels", "sample:decode", "--json", capsys=capsys)
    assert code == 0
    assert len(json.loads(out)["rows"]) == 3


def test_thresholds_reach_findings_the_list_of_rules_and_pages(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text(
        "[thresholds]\nlaunch_bound.low = 0.11\nsync_points.without_steps.low = 0.06\n"
    )
    changed = [
        {"name": "launch_bound.low", "value": 0.11, "default": 0.05},
        {"name": "sync_points.without_steps.low", "value": 0.06, "default": 0.05},
    ]
    for words in (("findings", "sample:decode"), ("summary", "sample:decode")):
        assert json.loads(run(*words, "--json", capsys=capsys)[1])["thresholds"] == changed
        said = "Thresholds of the settings: launch_bound.low 11.0 % in place of 5.0 %;"
        assert said in run(*words, capsys=capsys)[1]
    rules = json.loads(run("rules", "--json", capsys=capsys)[1])["rules"]
    listed = [each for rule in rules for each in rule["thresholds"]]
    assert [each for each in listed if each["value"] != each["default"]] == changed
    assert "  launch_bound.low = 0.11  (11.0 %, by default 5.0 %)" in run("rules", capsys=capsys)[1].splitlines()
    assert run("report", "sample:decode", "-o", "report.html", capsys=capsys)[0] == 0
    assert "launch_bound.low 11.0 % in place of 5.0 %" in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "theme", "root"),
    [
        (("leaderboard",), "dark", ' data-theme="dark"'),
        (("report", "small.json"), "light", ' data-theme="light"'),
        (("report", "small.json"), "none", ""),
    ],
)
def test_a_page_opens_in_the_theme_of_the_settings(
    folder: Path, words: tuple[str, ...], theme: str, root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text(f'theme = "{theme}"\n')
    (folder / "small.json").write_bytes(write_file([kernel("gemm", "100", "10", correlation=1)]))
    assert run(*words, "-o", "page.html", capsys=capsys)[0] == 0
    assert f'<html lang="en"{root}>' in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("[kernels]\nsort = 'count'", ("kernels", "sample:decode", "--roofline"), "--sort: set in {file}"),
        ("[kernels]\nroofline = true", ("kernels", "sample:decode", "--sort", "count"), "--roofline: set in {file}"),
        ("[ab]\nlayout = 'ab-table'", ("ab", "tiny-llama", "--json"), "--layout: set in {file}"),
        ("[kernels]\ntop = 3", ("kernels", "sample:decode", "--nothing"), None),
        ("[kernels]\ntop = 3", ("kernels",), None),
        ("top = 3", ("kernels", "sample:decode", "--top", "2", "--json", "--csv"), None),
    ],
)
def test_what_a_setting_has_a_command_refuse_is_said_to_be_one(
    folder: Path, text: str, words: tuple[str, ...], said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "inferometer.toml").write_text(text)
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    if said is None:
        assert "set in" not in err
    else:
        assert last == f"{said.format(file=folder / 'inferometer.toml')}, not on the command line."


@pytest.mark.parametrize("text", ["[tool]\ninferometer = 3", "[tool.inferometer]\nnothing = 3"])
def test_the_table_in_a_shared_file_is_named(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text(text)
    code, _, err = run("kernels", "sample:decode", capsys=capsys)
    assert code == 3
    assert f"{folder}/pyproject.toml, [tool.inferometer]: " in err


def test_a_shared_file_that_is_damaged_is_left_to_its_owners(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text("[tool.inferometer\n")
    assert kernels(capsys=capsys) == 25


@pytest.mark.parametrize("name", SAMPLES)
def test_each_sample_is_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("summary", f"sample:{name}", "--json", capsys=capsys)
    assert (code, bool(json.loads(out))) == (0, True)


def test_a_sample_that_isnt_there_is_named_and_a_file_of_that_name_goes_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run("summary", "sample:decod", capsys=capsys)
    assert (code, err.splitlines()[0]) == (3, 'error: unknown sample "decod"')
    (folder / "sample:decode").write_text("no trace")
    code, _, err = run("summary", "sample:decode", capsys=capsys)
    assert code == 3
    assert "sample:decode" in err


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete ")])
def test_a_shell_gets_its_script(shell: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("completion", shell, capsys=capsys)
    assert code == 0
    assert words in out
    found = json.loads(run("completion", shell, "--json", capsys=capsys)[1])
    assert (found["shell"], found["script"].strip()) == (shell, out.strip())


def test_commands_and_options_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def complete(*words: str) -> Any:
        monkeypatch.setenv("_INFEROMETER_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("inferometer", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return run(capsys=capsys)[1]

    assert "plain,kernels" in complete("kern")
    assert "plain,--top" in complete("kernels", "--to")


def test_alone_it_welcomes_with_samples_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys=capsys)
    assert (code, err) == (0, "")
    for line in out.splitlines():
        words = line.split()
        if words[:1] == ["inferometer"] and words[1:2] != ["--help"]:
            asked = [word for word in words[1:] if word in _commands() or word.startswith("sample:")]
            assert run(*asked, capsys=capsys)[0] == 0
    assert len(out.splitlines()) < 12


def test_help_lists_each_command_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("--help", capsys=capsys)
    names = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    assert sorted(name for name in names if name in _commands()) == sorted(_commands())
    assert out.index("Start with:") < out.index("Look:") < out.index("Tools:")
