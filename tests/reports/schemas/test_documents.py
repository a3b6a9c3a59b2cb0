"""What commands print is what the types in `reports/schemas` say, and these say no more than what is printed."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from functools import cache
from io import StringIO
from pathlib import Path

import click
import msgspec
import pytest
from docs.json_schemas import json_schema, known_schemas
from tests.bench.ranking.ranked_runs import result, run_of
from tests.commands.test_ab import made
from tests.commands.test_command_line import run, run_apart
from tests.commands.test_roofline_counters import PROGRAM, written
from tests.fleet.digests import fleet_of_everything, write_shapes
from tests.ncu_files import RAW
from tests.reports.schemas.lines import LINES, NEVER, OF_A_TRACE, SOMETIMES
from tests.reports.schemas.walked import Walk, fields_of
from tests.rocprof_files import write_small
from tests.truth.planted import write_planted
from tests.watch.streams import made as made_steps
from tests.watch.streams import one_after_another
from tools.make_memory_snapshot import encode, make_snapshot

import inferometer
from inferometer.analyses.ab.comparison import compare_paths
from inferometer.bench.ranking.ranking import rank_runs
from inferometer.bench.results import encode_run
from inferometer.commands.main import cli, main
from inferometer.commands.options.watching import EVENT_SCHEMA
from inferometer.commands.record import SERVER_SCHEMA
from inferometer.record.server.recording import ServerRecording
from inferometer.reports.ab_table import render_ab_table
from inferometer.reports.watching.events import document
from inferometer.watch.cause import Why
from inferometer.watch.session import Event, Session, What
from inferometer.watch.watcher import Watcher

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"
KNOWN = known_schemas()
NEED_TORCH = ("bench", "builds", "chat", "measured_device", "webgpu_chat")
REAL_PAIRS = (
    ("h100_qwen1.5-0.5b", "mi300_qwen1.5-0.5b"),
    ("h100_vit", "mi300_vit"),
    ("mi300_vllm_gpt-oss_decode", "mi300_sglang_qwen3-8b_decode"),
    ("rank0_sampled", "rank1_sampled"),
)
APART = ("record",)  # programs are started
OF_NO_LINE = {  # what they are of is made here
    *("ab", "path_table", "ranking", "ranking_differences", "recorded_server", "trace_summary"),
    *("webgpu_overhead", "webgpu_profile", "watch_event"),
}
FROM_ELSEWHERE = (  # parts that are declared where they are used otherwise, each described as a whole
    *("Facts", "Device", "NamedId", "RankFile", "PrintedTotals", "Quantity", "device, version 1"),
    *("ShapeResult", "RankedShape", "Timing", "Versus", "Attribution", "Bound", "CandidateRecord", "Conditions"),
)
PRINTED_TABLES = """\
Why does splitKreduce_kernel take so long?
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
50.0,5000,48,104.2,100.0,90,120,10.0,nvjet_tst_64x8_64x16_1x4_h_bz_splitK_TNT
20.0,2000,24,83.3,80.0,70,90,10.0,nvjet_tst_64x16_64x16_1x4_h_bz_splitK_TNT
30.0,3000,72,41.7,40.0,30,50,10.0,"void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)"

And on the other machine:
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
100.0,5000,3,1666.7,1600.0,1500,1900,10.0,nvjet_tst_64x8_64x16_1x4_h_bz_splitK_TNT
"""


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Walk]:
    """A document as its lines of `LINES` print it, held against its type; each is printed once."""
    folder = tmp_path_factory.mktemp("documents")
    (table := folder / "table.txt").write_text(PRINTED_TABLES)
    (snapshot := folder / "snapshot.pickle").write_bytes(encode(make_snapshot()[0], ".pickle"))
    bench = (SAMPLES / "engines" / "llama_bench_1.json").read_text()
    (other_model := folder / "other.json").write_text(bench.replace("llama ?B all F32", "another"))
    (ranks := folder / "ranks").mkdir()
    write_planted(ranks, "slow-rank", world=2, steps=4)
    places = {
        "decode": SAMPLES / "decode.json.gz",
        "log": SAMPLES / "webgpu.log.gz",
        "slow": SAMPLES / "slow",
        "recordings": SAMPLES / "recorded",
        "h200": SAMPLES / "h200",
        "engines": SAMPLES / "engines",
        "other_model": other_model,
        "samples": SAMPLES,
        "serving": SAMPLES / "serving.json",
        "ranks": ranks,
        "table": table,
        "counted": written(folder, PROGRAM),
        "counters": RAW,
        "amd": write_small(folder / "amd.json"),
        "snapshot": snapshot,
        "python": sys.executable,
        "fleet": fleet_of_everything(folder / "fleet.ifm").folder,
        "shapes": write_shapes(folder / "shapes.jsonl"),
        "right": ROOT / "tests" / "bench" / "candidates" / "right.py",
    }

    @cache
    def of(name: str) -> Walk:
        walk = Walk()
        for number, line in enumerate(LINES[name]):
            new = folder / f"{name}-{number}"
            hold(walk, printed([word.format(**places, new=new) for word in shlex.split(line)]), name, line)
        return walk

    return of


def printed(words: list[str]) -> str:
    """What a command prints with `--json`."""
    if words[0] in APART:
        done = run_apart(words[0], "--json", *words[1:])
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
        main([words[0], "--json", *words[1:]])
    assert stopped.value.code == 0, err.getvalue()
    return out.getvalue()


def hold(walk: Walk, text: str, name: str, where: str) -> None:
    """One document against the type that declares it, by our own walk and as another program would."""
    document = KNOWN[name].declared()
    data = json.loads(text)
    assert next(iter(data.items())) == ("schema", {"name": name, "version": KNOWN[name].version}), where
    walk.read(data, document)
    assert walk.problems == [], where
    msgspec.json.decode(text, type=document, strict=True)


@pytest.fixture
def forks(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Skips a document that needs torch where it lacks; else what it starts is forked."""

    def of(name: str) -> None:
        if name in NEED_TORCH:
            pytest.importorskip("torch", reason="torch isn't installed")
            request.getfixturevalue("forked")

    return of


@pytest.mark.parametrize("name", sorted(LINES))
def test_a_document_has_what_its_type_declares(
    name: str, walks: Callable[[str], Walk], forks: Callable[[str], None]
) -> None:
    forks(name)
    assert walks(name).filled


def test_every_field_is_filled_in_some_document(walks: Callable[[str], Walk], forks: Callable[[str], None]) -> None:
    for name in LINES:
        forks(name)
    declared = set[str]().union(*(fields_of(KNOWN[name].declared()) for name in LINES))
    filled = set[str]().union(*(walks(name).filled for name in LINES))
    unfilled = declared - filled - SOMETIMES
    explained = {each for fields in NEVER.values() for each in fields}
    needed, stale = sorted(unfilled - explained), sorted(explained - unfilled)
    assert not needed, f"give these a line that fills them, or a reason: {', '.join(needed)}"
    assert not stale, f"these are filled now: {', '.join(stale)}"


def test_a_summary_in_python_is_a_document() -> None:
    walk = Walk()
    for path in ("decode.json.gz", "webgpu.log.gz"):
        with inferometer.open(SAMPLES / path) as trace:
            found = inferometer.json_of(inferometer.summarize(trace))
        hold(walk, json.dumps(found), "trace_summary", path)


def test_an_ab_is_a_document_and_so_is_a_look_at_its_table(tmp_path: Path) -> None:
    walk = Walk()
    found = compare_paths(made(slow_ns=200_000))
    hold(walk, as_text(inferometer.json_of(found)), "ab", "a slow arm")
    hold(walk, as_text(inferometer.json_of(compare_paths(made(ended="out of memory")))), "ab", "an early end")
    (table := tmp_path / "table.csv").write_text(render_ab_table(found))
    hold(walk, printed(["ab", "--read", str(table)]), "path_table", "its table")


def test_a_ranking_is_a_document_and_so_is_what_changed(tmp_path: Path) -> None:
    runs = [
        run_of(*(result(name, i, ns, speedup=1.25) for i in range(3) for name in ("mine", "torch")), date=date)
        for ns, date in ((8_000, "2026-11-20T10:00:00Z"), (9_000, "2026-11-21T10:00:00Z"))
    ]
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, made_run in zip(files, runs, strict=True):
        file.write_bytes(encode_run(made_run))
    walk = Walk()
    hold(walk, printed(["leaderboard", *map(str, files), "-o", str(tmp_path / "page.html")]), "ranking", "two files")
    hold(walk, printed(["leaderboard", str(files[0])]), "ranking", "one file")
    differences = rank_runs([("before", runs[0]), ("after", runs[1])]).differences
    assert differences is not None
    hold(walk, as_text(inferometer.json_of(differences)), "ranking_differences", "two runs")


def test_the_parts_of_a_webgpu_answer_are_documents_too() -> None:
    pytest.importorskip("tokenizers", reason="tokenizers isn't installed")
    words = ["chat", "tiny-llama", "--engine", "webgpu", "--on", "numpy", "--prompt", "Hi", "--new-tokens", "2"]
    found = json.loads(printed([*words, "--profile", "--overhead"]))
    walk = Walk()
    for name, part in (("webgpu_profile", "profile"), ("webgpu_overhead", "overhead")):
        hold(walk, json.dumps(KNOWN[name].document(found[part])), name, part)


def as_text(data: dict[str, object]) -> str:
    return msgspec.json.encode(data).decode()


def test_what_was_recorded_of_a_server_is_a_document() -> None:
    whole = ServerRecording("a.ifm", "vllm", "0.13", "m", 1, 2, files=((0, "r0"),), kept="b", missing=("c",))
    walk = Walk()
    for each in (whole, ServerRecording("a.ifm", "sglang", None, None, 1, 2)):
        hold(walk, json.dumps(SERVER_SCHEMA.document(asdict(each))), "recorded_server", each.engine)
    assert fields_of(SERVER_SCHEMA.declared()) == walk.filled


def test_an_event_of_a_watch_is_a_document() -> None:
    events: list[Event] = []
    session = Session(Watcher(), on_event=events.append)
    times = (400, 10), (60, 20), (60, 40), (200, 10)
    session.watch(one_after_another(*(made_steps(count, ms=ms, seed=ms, owner="rank 3") for count, ms in times)))
    session.account.explain(0, Why("cause named", "slower", "Because.", "others_cpu_usage", "host"))
    events.append(Event(What.CAUSE, 0, session.account.slowdowns[0], None, 0))
    walk = Walk()
    for event in events:
        hold(walk, json.dumps(EVENT_SCHEMA.document(document(event, "x", 0))), "watch_event", event.what)
    assert {event.what for event in events} == set(What)
    assert fields_of(EVENT_SCHEMA.declared()) == walk.filled


@pytest.mark.parametrize("line", OF_A_TRACE)
def test_documents_of_real_traces_have_what_their_types_declare(
    line: str, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = Walk()
    for path in sorted((shared_data / "traces").rglob("*.*")):
        if path.suffix == ".md":
            continue
        code, out, err = run(*line.split(), path, "--json", capsys=capsys)
        assert code in (0, 3), err  # 3: the question doesn't apply to this file
        if code == 0:
            hold(walk, out, json.loads(out)["schema"]["name"], f"{line} {path.name}")


@pytest.mark.parametrize(("base", "candidate"), REAL_PAIRS)
@pytest.mark.parametrize("command", ["compare", "tree"])
def test_documents_of_real_pairs_have_what_their_types_declare(
    command: str, base: str, candidate: str, shared_data: Path
) -> None:
    runs = [str(shared_data / "traces" / "kineto" / f"{name}.json.gz") for name in (base, candidate)]
    text = printed(["compare", *runs] if command == "compare" else ["tree", runs[1], "--base", runs[0]])
    hold(Walk(), text, json.loads(text)["schema"]["name"], f"{command} {base} {candidate}")


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_field_of_a_schema_says_what_it_is(name: str) -> None:
    """By a description of its own, or by the part that it is."""
    schema = json.loads(json_schema(KNOWN[name]))
    assert schema["properties"]["schema"]["properties"]["name"] == {"const": name}
    for part in (schema, *schema["$defs"].values()):
        bare = [key for key, each in part["properties"].items() if not says_what_it_is(each)]
        assert part["description"]
        assert bare == [] or part["title"] in FROM_ELSEWHERE, part["title"]


def says_what_it_is(field: dict[str, object]) -> bool:
    return "description" in field or "$ref" in json.dumps(field)


def test_every_document_is_tried() -> None:
    assert sorted([*LINES, *OF_NO_LINE]) == sorted(KNOWN)


def test_no_command_loads_the_types() -> None:
    code = (
        "import sys\nfrom inferometer.commands.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n"
        "    print(*[name for name in sys.modules if 'reports.schemas.' in name], file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "kernels", str(SAMPLES / "decode.json.gz"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr.split() == ["inferometer.reports.schemas.schema"]


def test_every_command_that_prints_json_says_which_document_it_is() -> None:
    """Whatever prints JSON goes through `Output.write_json`, which asks for a schema."""
    commands = [cli.get_command(click.Context(cli), name) for name in cli.list_commands(click.Context(cli))]
    without = [each.name for each in commands if each and all(param.name != "json" for param in each.params)]
    assert without == ["mcp", "serve"]  # whose tools answer with the documents of others, and a server for browsers
    source = ROOT / "src" / "inferometer" / "commands"
    texts = {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in source.rglob("*.py")}
    encoding = [name for name, text in texts.items() if "json.encode(" in text or "json.dumps(" in text]
    assert encoding == ["base.py", "tools/answers.py", "tools/calls.py"]
