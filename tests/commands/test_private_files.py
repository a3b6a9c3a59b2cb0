"""Secrets and names in a file: what is reported of them, and that nothing we write holds them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import call, event, kernel, write_file
from tests.privacy.secret_texts import planted

USER, HOST, HOME = "mallory", "box42-rack7", "/home/mallory"
WORD = "s3cr3t-w0rd"
MASKED = "hf_" + "X" * 34


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """A file with a secret of every kind in every place: next to the events, in names, arguments, categories, ids."""
    texts = [text for _, text, _ in planted()]
    env = {"PATH": "/bin", "HOME": HOME, "HOSTNAME": HOST, "HF_TOKEN": MASKED, "WANDB_API_KEY": WORD}
    before = {"schemaVersion": 1, "username": USER, "metadata": {"env": env, "texts": texts}, "cupti_version": texts[0]}
    events = [
        call(correlation=1),
        kernel("gemm", "100", "10"),
        {**kernel("gemm", "120", "5"), "pid": f"{HOST}(0)"},
        event("python_function", f"{HOME}/serve/model.py(3): forward", "80", "60", Python_id=1),
        event("user_annotation", f"step of {USER} on {HOST}", "70", "80"),
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"python {HOME}/run.py --api-key {WORD}"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": texts[1]}},
    ]
    for number, text in enumerate(texts):
        events += [
            event("user_annotation", text, str(200 + number), "1"),
            event("cpu_op", f"op {text}", str(300 + number), "1", Concrete_Inputs=[text]),
            event("python_function", f"{text}(3): f", str(400 + number), "1"),
            event(f"odd {text}", "x", str(500 + number), "1"),
            event("cuda_runtime", "cudaFree", "x" + text, "1"),
            {"ph": "i", "s": "t", "name": text, "pid": text, "tid": text, "ts": 600 + number},
            {"ph": "C", "name": text, "pid": 1, "ts": 700 + number, "args": {"value": 1}},
        ]
    path = tmp_path / USER / "trace.json"
    path.parent.mkdir()
    path.write_bytes(write_file(events, before=before))
    return path


def secrets() -> list[str]:
    return [*(secret.split("\n")[1] if "\n" in secret else secret for _, _, secret in planted()), WORD]


def written(place: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each file; Parquet as CSV, packed ones unpacked."""
    import polars as pl

    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if path.suffix == ".parquet":
            arrays = pl.selectors.by_dtype(pl.Array(pl.Int64, 3))
            yield path.name, pl.read_parquet(path).drop(arrays).write_csv()
        elif path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            yield path.name, data.decode("utf-8", "replace")


def assert_lacks(text: str, words: list[str], where: str) -> None:
    held = [n for n, word in enumerate(words) if word in text]
    assert held == [], f"{where} holds words number {held}"  # a failure must not print a secret either


def ways(leaky: Path, out: Path) -> dict[str, list[Any]]:
    to = lambda form, *more: ["export", leaky, "--to", form, "-o", out / form, *more]  # noqa: E731  a table of them
    return {
        "import": ["import", leaky, "-o", out / "store.ifm"],
        "chrome": to("chrome"),
        "perfetto": to("perfetto"),
        "parquet": to("parquet"),
        "csv": to("csv"),
        "page": ["report", leaky, "-o", out / "page.html"],
        "comparison": ["report", leaky, leaky, "-o", out / "two.html"],
        "markdown": ["report", leaky, "-o", out / "page.md"],
    }


def test_nothing_that_we_write_holds_a_secret(leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for way, words in ways(leaky, out).items():
        code, said, err = run(*words, capsys=capsys)
        assert code == 0, way
        assert_lacks(said + err, secrets(), f"what {way} prints")
    files = [file for place in out.iterdir() for file in written(place)]
    assert len(files) > 20
    for name, text in files:
        assert_lacks(text, secrets(), name)


@pytest.mark.parametrize(
    "words",
    [
        *(["summary"], ["summary", "--json"], ["summary", "--markdown"], ["kernels", "--csv"], ["spans", "--json"]),
        *(["calls"], ["steps"], ["findings", "--json"], ["launches", "--json"], ["tree"], ["timeline", "--json"]),
    ],
)
def test_nothing_that_we_print_holds_a_secret(
    words: list[str], leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said, err = run(words[0], leaky, *words[1:], capsys=capsys)
    assert_lacks(said + err, secrets(), words[0])


def test_an_error_that_quotes_the_file_holds_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no-trace.json"
    path.write_text(json.dumps({f"WANDB_API_KEY={WORD}": 1}))
    code, said, err = run("summary", path, "--format", "kineto", capsys=capsys)
    assert code == 3
    assert_lacks(said + err, secrets(), "the error")


def test_summary_and_import_say_what_and_where_but_not_the_value(
    leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said, _ = run("summary", leaky, "-v", capsys=capsys)
    _, _, err = run("import", leaky, "-o", tmp_path / "store.ifm", "-v", capsys=capsys)
    for text in (" ".join(said.split()), err):
        assert "1 secret [value of an option or variable named as a secret in metadata.env.WANDB_API_KEY]: " in text
        assert "1 secret [Hugging Face access token in metadata.texts[0]]: " in text
        assert "5 environment [metadata.env]: " in text
        assert "1 masked_secret [metadata.env.HF_TOKEN]: Named as a secret, but the file holds only a mask." in text


def test_a_quick_read_of_kernels_warns_too_but_only_of_secrets(leaky: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said, _ = run("kernels", leaky, "--json", capsys=capsys)
    names = {entry["name"] for entry in json.loads(said)["losses"]["entries"]}
    assert "secret" in names
    assert names.isdisjoint({"masked_secret", "environment"})


def test_the_store_keeps_the_warning(leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store.ifm"
    run("import", leaky, "-o", store, capsys=capsys)
    _, said, _ = run("summary", store, "--json", capsys=capsys)
    assert json.loads(said)["source"] == str(store)
    assert any(entry["name"] == "secret" for entry in json.loads(said)["losses"]["entries"])


@pytest.mark.parametrize("to", ["chrome", "perfetto", "parquet", "csv"])
def test_a_redacted_copy_names_nobody(to: str, leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "shared"
    code, _, err = run("export", leaky, "--to", to, "--redact", "-o", out, capsys=capsys)
    assert code == 0
    assert "redacted: user names and home folders: " in err
    assert "redacted: host names and addresses: " in err
    assert "redacted: command lines: " in err
    assert "redacted: Hugging Face access token: " in err
    for name, text in written(out):
        assert_lacks(text, [*secrets(), USER, HOST, "/home/", "run.py"], name)


def test_a_redacted_copy_lists_what_was_blanked_and_answers_as_its_file_does(
    leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "shared.json"
    run("export", leaky, "--to", "chrome", "--redact", "-o", out, capsys=capsys)
    listed = json.loads(out.read_text())["exportedBy"]["redacted"]
    assert (listed["user names and home folders"], listed["host names and addresses"]) == (1, 2)
    for words in (["kernels", "--json"], ["steps", "--json"], ["timeline", "--json"]):
        first, second = (json.loads(run(words[0], path, words[1], capsys=capsys)[1] or "{}") for path in (leaky, out))
        for key in ("rows", "total_ns", "duration_ns", "devices", "steps"):
            assert first.get(key) == second.get(key)
    frames = [
        each["name"] for each in json.loads(out.read_text())["traceEvents"] if each.get("cat") == "python_function"
    ]
    assert "~user-1/serve/model.py(3): forward" in frames


def test_a_copy_of_a_file_that_tells_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "plain.json", tmp_path / "out"
    path.write_bytes(write_file([kernel()]))
    _, _, err = run("export", path, "--to", "chrome", "--redact", "-o", out, capsys=capsys)
    assert err.splitlines()[0] == "redacted: found nothing to blank"
    assert json.loads(out.read_text())["exportedBy"] == {
        "tool": "inferometer",
        "source": "plain.json",
        "recordedWith": "PyTorch profiler (Kineto)",
        "redacted": {},
    }


@pytest.mark.parametrize(
    "words",
    [
        *(["summary", "--markdown"], ["kernels", "--markdown"], ["timeline", "--markdown"]),
        *(["findings", "--markdown"], ["report", "-o", "-"], ["report", "-o", "-", "--to", "markdown"]),
    ],
)
def test_pages_and_markdown_name_the_file_without_its_folders(
    words: list[str], leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = run(words[0], leaky, *words[1:], capsys=capsys)
    assert code == 0
    assert str(leaky.parent) not in said
    assert str(leaky.parent.parent) not in said


def test_a_page_of_two_runs_names_them_without_their_folders(leaky: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("html", "markdown"):
        _, said, _ = run("report", leaky, leaky, "-o", "-", "--to", form, capsys=capsys)
        assert "trace.json" in said
        assert str(leaky.parent) not in said
