"""`record_server` against a small server that speaks both engines' protocols, with each of its faults."""

import gzip
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from tests.record.server.fake_server import KEY, MODEL, SGLANG_METRICS, VLLM_METRICS, Fake, FakeServer, rank_trace
from tests.traces import counted, rows

import inferometer
from inferometer.errors import InputError, Unavailable
from inferometer.record.server import files, metrics
from inferometer.record.server.files import NewFiles, Pace, is_whole
from inferometer.record.server.http import MOST_BYTES, Http, NoAnswer
from inferometer.record.server.metrics import labels_of, read_metrics
from inferometer.record.server.place import is_this_machine
from inferometer.record.server.process import find_processes
from inferometer.record.server.profile import Waits
from inferometer.record.server.recording import ServerOptions, ServerRecording
from inferometer.record.server.server import record_server

QUICK = Waits(
    answer_s=5,
    start_s=5,
    refuse_s=0.1,
    stop_s=10,
    metrics_hz=50,
    pace=Pace(poll_s=0.01, settle_s=0.1, none_s=0.2, stall_s=0.3, files_s=10),
)
Record = Callable[..., ServerRecording]


@pytest.fixture(autouse=True)
def sampler(monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    """In the place of the sampler of device and host: one sample at its start, one at its end."""

    class CounterSampler:
        processes: Sequence[int] | None = None

        def __init__(self, sink: Any, *, hz: float = 10, processes: Sequence[int] | None = None) -> None:
            self._sink, self._is_on = sink, False
            type(self).processes = processes

        def start(self) -> None:
            self._is_on = True
            self._take()

        def stop(self) -> None:
            if self._is_on:
                self._take()
            self._is_on = False

        def _take(self) -> None:
            names = ["load", "process_load", "others_load", "runq_share", "cpu_limited_share", "cpu_stopped"]
            times = {"time_ns": self._sink.clock.now(), "value": [1.0, 2.0, 3.0, 0.5, 0.5, 1.0]}
            self._sink.add("counters", len(names), {"metric": names, **times})

    monkeypatch.delenv("INFEROMETER_API_KEY", raising=False)
    module = ModuleType("inferometer.record.counters.sampler")
    module.CounterSampler = CounterSampler  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "inferometer.record.counters.sampler", module)
    return CounterSampler


@pytest.fixture
def told() -> list[str]:
    """What was said meanwhile."""
    return []


@pytest.fixture
def record(tmp_path: Path, told: list[str]) -> Record:
    """Records a server for a moment into `run.ifm`."""

    def record(url: str, **options: Any) -> ServerRecording:
        api_key, waits = options.pop("api_key", None), options.pop("waits", QUICK)
        wanted = ServerOptions(**{"seconds": 0.15} | options)
        return record_server(url, tmp_path / "run.ifm", wanted, told.append, api_key=api_key, waits=waits)

    return record


# The whole


@pytest.mark.parametrize("world", [1, 4])
def test_sglang_is_told_a_folder_and_all_ranks_are_joined(tmp_path: Path, record: Record, world: int) -> None:
    with FakeServer(Fake(world=world)) as server:
        recording = record(server.url)
    assert recording.missing == ()
    assert (recording.engine, recording.version, recording.model) == ("sglang", "0.5.3", MODEL)
    assert [rank for rank, _ in recording.files] == list(range(world))
    assert server.paths().count("/stop_profile") == 1
    trace = inferometer.open(tmp_path / "run.ifm")
    assert trace.facts.ranks == tuple(range(world))
    launches = trace.launches.group_by("rank").len().collect()
    assert len(set(launches["len"])) == 1
    assert launches["len"][0] > 50
    assert rows(trace, "ops", "input_dims")[0] is not None
    assert {"load", "engine.requests_running"} <= set(rows(trace, "counters", "metric"))
    assert [path.name for path in tmp_path.iterdir()] == ["run.ifm"], "nothing else is left"


@pytest.mark.parametrize("world", [1, 4])
def test_vllm_writes_into_the_folder_that_it_was_started_with(tmp_path: Path, record: Record, world: int) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "dp0_pp0_tp0_rank0.17.pt.trace.json").write_bytes(rank_trace(0, 10**9, 0, 1))  # an older recording
    with FakeServer(Fake("vllm", folder, world)) as server:
        recording = record(server.url, traces=folder)
    assert recording.missing == ()
    assert (recording.engine, recording.version) == ("vllm", "0.13.0")
    assert [rank for rank, _ in recording.files] == list(range(world))
    assert recording.kept == str(folder)
    assert len(list(folder.iterdir())) == world + 1, "the user's files stay"
    start = next(body for _, path, body in server.asked if path == "/start_profile")
    assert start == b"", "vLLM's profiler takes no arguments"


def test_counters_and_launches_are_on_one_clock(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake()) as server:
        began_ns, ended_ns = time.time_ns(), 0
        recording = record(server.url, seconds=0.4)
        ended_ns = time.time_ns()
    trace = inferometer.open(tmp_path / "run.ifm")
    base_ns = trace.facts.clock_base_ns
    assert base_ns is not None
    times = trace.launches.select(pl.col("start_ns").min().alias("first"), pl.col("start_ns").max().alias("last"))
    first_ns, last_ns = times.collect().row(0)
    assert began_ns < first_ns + base_ns < last_ns + base_ns < ended_ns
    assert last_ns + base_ns == server.ended_ns, "exactly when the fake says"
    engine = trace.counters.filter(pl.col("metric") == "engine.requests_running").sort("time_ns").collect()
    sampled = [time_ns + base_ns for time_ns in engine["time_ns"]]
    assert len(sampled) > 5
    inside = [time_ns for time_ns in sampled if first_ns + base_ns <= time_ns <= last_ns + base_ns]
    assert len(inside) > 0.7 * len(sampled), "sampled while it was profiled"
    for time_ns in sampled:  # each sample lies where the server says that it was asked
        assert min(abs(time_ns - scrape_ns) for scrape_ns in server.scrapes) < 20_000_000
    assert recording.began_ns < recording.ended_ns
    about = trace.facts.engine_metrics["server"]
    assert abs(about["clock_drift_ns"]) < 1_000_000_000


def test_facts_say_what_the_server_is_and_no_secret(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(world=4, key=KEY)) as server:
        record(server.url, api_key=KEY)
    facts = inferometer.open(tmp_path / "run.ifm").facts
    assert facts.model == MODEL
    assert facts.versions["sglang"] == "0.5.3"
    arguments = facts.engine_metrics["server"]["arguments"]
    assert arguments["attention_backend"] == "fa3"
    assert arguments["tp_size"] == 4
    assert arguments["max_running_requests"] == 256
    assert "quantization" not in arguments, "what the server leaves open is left out"
    assert KEY not in (tmp_path / "run.ifm" / "facts.json").read_text("utf-8")


def test_the_process_that_listens_is_the_one_whose_counters_are_taken(record: Record, sampler: type[Any]) -> None:
    with FakeServer(Fake()) as server:
        assert find_processes(Http(server.url).port) == (os.getpid(),)
        record(server.url)
    assert sampler.processes == (os.getpid(),)


def test_without_the_servers_process_its_load_does_not_pass_for_others(
    tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferometer.record.server.sampling.find_processes", lambda port: ())
    with FakeServer(Fake()) as server:
        recording = record(server.url)
    assert len(recording.missing) == 1
    assert "load by others" in recording.missing[0]
    metrics = set(rows(inferometer.open(tmp_path / "run.ifm"), "counters", "metric"))
    assert "load" in metrics
    assert not metrics & {"process_load", "others_load"}


def test_with_the_real_sampler(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "inferometer.record.counters.sampler")
    with FakeServer(Fake()) as server:
        recording = record(server.url, seconds=0.5)
    assert recording.missing == ()
    trace = inferometer.open(tmp_path / "run.ifm")
    load = trace.counters.filter(pl.col("metric") == "others_cpu_usage").collect()
    assert load.height > 2
    starts = trace.launches.select(pl.col("start_ns").min().alias("a"), pl.col("start_ns").max().alias("b"))
    first_ns, last_ns = starts.collect().row(0)
    inside = load.filter(pl.col("time_ns").is_between(first_ns, last_ns))
    assert inside.height >= load.height - 2, "sampled while it was profiled"


def test_losses_of_the_traces_are_kept(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(world=2)) as server:
        record(server.url)
    losses = inferometer.open(tmp_path / "run.ifm").losses
    assert losses.seen["kernel"] > 0
    assert losses.total("metadata_event") > 0


def test_plain_files_are_whole_when_they_stand_still(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(gz=False, blocks=6)) as server:
        recording = record(server.url)
    assert recording.missing == ()
    assert "last_kernel" in rows(inferometer.open(tmp_path / "run.ifm"), "launches", "kernel")


def test_a_front_ends_trace_has_no_rank(tmp_path: Path, record: Record) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    with FakeServer(Fake("vllm", folder, 2, frontend=True)) as server:
        recording = record(server.url, traces=folder)
    assert [rank for rank, _ in recording.files] == [0, 1]
    trace = inferometer.open(tmp_path / "run.ifm")
    tokenize = trace.ops.filter(pl.col("op") == "tokenize").select("rank", "start_ns").collect().row(0)
    first_ns = trace.launches.select(pl.col("start_ns").min()).collect().item()
    assert tokenize == (None, first_ns + 5_000), "on the same clock"
    assert any("front end" in note for note in trace.facts.notes)


def test_vllm_in_development_mode_tells_its_folder(tmp_path: Path, record: Record) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    with FakeServer(Fake("vllm", folder, 2, dev_mode=True)) as server:
        recording = record(server.url)
    assert [rank for rank, _ in recording.files] == [0, 1]
    arguments = inferometer.open(tmp_path / "run.ifm").facts.engine_metrics["server"]["arguments"]
    assert arguments["tensor_parallel_size"] == 2
    assert arguments["block_size"] == "16"


def test_steps_end_the_recording_by_themselves(record: Record) -> None:
    with FakeServer(Fake(world=2)) as server:
        recording = record(server.url, seconds=None, steps=5)
    assert b'"num_steps":5' in next(body for _, path, body in server.asked if path == "/start_profile")
    assert "/stop_profile" not in server.paths()
    assert len(recording.files) == 2


def test_steps_that_never_come_end_with_the_time(record: Record) -> None:
    with FakeServer(Fake(steps_s=0.6)) as server:
        recording = record(server.url, seconds=0.2, steps=5)
    assert "/stop_profile" in server.paths()
    assert len(recording.files) == 1


def test_steps_wait_for_every_rank(record: Record) -> None:
    with FakeServer(Fake(world=2, lost=1)) as server:
        recording = record(server.url, seconds=0.8, steps=5, waits=replace(QUICK, pace=replace(QUICK.pace, stall_s=9)))
    assert "/stop_profile" in server.paths(), "it had not ended by itself"
    assert len(recording.files) == 1


def test_steps_don_t_wait_for_ever_for_a_rank(record: Record) -> None:
    with FakeServer(Fake(world=2, lost=1)) as server:
        recording = record(server.url, seconds=None, steps=5)
    assert len(recording.files) == 1
    assert any("1 of 2 ranks" in what for what in recording.missing)


def test_control_c_ends_the_recording_and_keeps_it(record: Record, told: list[str]) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 5:
            raise KeyboardInterrupt
        time.sleep(seconds)

    with FakeServer(Fake()) as server:
        recording = record(server.url, seconds=None, waits=replace(QUICK, pace=replace(QUICK.pace, sleep=sleep)))
    assert "stopping" in told
    assert recording.missing == ()
    assert len(recording.files) == 1


def test_a_mistake_of_ours_stops_the_profiler(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr("inferometer.record.server.sampling.EngineMetrics.start", fail)
    with FakeServer(Fake()) as server:
        with pytest.raises(RuntimeError, match="ours"):
            record(server.url)
        assert "/stop_profile" in server.paths()


def test_a_server_that_starts_too_slowly_is_told_to_stop(record: Record) -> None:
    with FakeServer(Fake(start_s=0.3)) as server:
        with pytest.raises(NoAnswer, match=r"start_profile: no answer within 0\.1 s"):
            record(server.url, waits=replace(QUICK, start_s=0.1))
        assert "/stop_profile" in server.paths()


def test_a_second_control_c_leaves_the_counters(tmp_path: Path, record: Record) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) in (5, 7):
            raise KeyboardInterrupt
        time.sleep(seconds)

    with FakeServer(Fake(pause_s=0.5)) as server:
        recording = record(server.url, seconds=None, waits=replace(QUICK, pace=replace(QUICK.pace, sleep=sleep)))
        assert any("interrupted" in what for what in recording.missing)
        assert "/stop_profile" in server.paths()
    assert "load" in rows(inferometer.open(tmp_path / "run.ifm"), "counters", "metric")


def test_without_counters_none_are_sampled(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake()) as server:
        recording = record(server.url, counters=False)
    assert recording.missing == ()
    assert "/metrics" not in server.paths()
    trace = inferometer.open(tmp_path / "run.ifm")
    assert trace.counters.collect().height == 0
    assert trace.launches.collect().height > 0


# What goes wrong before anything is recorded


def refused(record: Record, url: str, tmp_path: Path, **options: Any) -> str:
    """The message and hint of an `InputError`, after which nothing is left."""
    with pytest.raises(InputError) as error:
        record(url, **options)
    assert not list(tmp_path.glob("run.ifm*"))
    assert not list(tmp_path.glob(".run.ifm*"))
    return str(error.value)


def test_nobody_listens(record: Record) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NoAnswer, match="nobody listens there"):
        record(f"http://127.0.0.1:{port}")


def test_something_else_than_http(record: Record) -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n\r\n") as url, pytest.raises(Unavailable, match="doesn't speak HTTP"):
        record(url)


def test_a_server_that_says_nothing(record: Record) -> None:
    with raw_server(b"") as url, pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
        record(url, waits=replace(QUICK, answer_s=0.2))


@pytest.mark.parametrize("begun", [b"HTTP/1.1", b"HTTP/1.1 200 OK\r\nServer:", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_that_drips_is_not_waited_for(begun: bytes, record: Record) -> None:
    with raw_server(begun, drips=True) as url, pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
        record(url, waits=replace(QUICK, answer_s=0.2))


def test_vllm_without_a_profiler_is_told_how_to_start_it(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake("vllm", tmp_path, profiles=False)) as server:
        message = refused(record, server.url, tmp_path, traces=tmp_path)
    assert "can't start a profiler (404)" in message
    assert '--profiler-config \'{"profiler": "torch", "torch_profiler_dir": "/DIR"}\'' in message
    assert "VLLM_TORCH_PROFILER_DIR=/DIR" in message


def test_a_wrong_or_missing_key_is_never_shown(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(key=KEY)) as server:
        assert "INFEROMETER_API_KEY" in refused(record, server.url, tmp_path)
        message = refused(record, server.url, tmp_path, api_key="sk-wrong")
    assert "wants a key (401)" in message
    assert "sk-wrong" not in message


def test_the_key_may_stand_in_the_environment(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFEROMETER_API_KEY", KEY)
    with FakeServer(Fake(key=KEY)) as server:
        assert record(server.url).missing == ()


def test_a_key_that_the_server_repeats_is_blotted_out(tmp_path: Path, record: Record) -> None:
    answer = (500, "text/plain", f"no: Bearer {KEY}".encode())
    with FakeServer(Fake(key=KEY, answers={"/start_profile": answer})) as server:
        message = refused(record, server.url, tmp_path, api_key=KEY)
    assert "no: Bearer ***" in message
    assert KEY not in message


def test_a_profiler_that_runs_already(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(is_busy=True)) as server:
        message = refused(record, server.url, tmp_path)
        assert "/stop_profile" not in server.paths(), "it is another's"
    assert "a profiler is running already" in message


def test_web_pages_and_other_servers_are_no_engine(tmp_path: Path, record: Record) -> None:
    page = (200, "text/html; charset=utf-8", b"<!DOCTYPE html><title>hello</title>")
    paths = ("/v1/models", "/version", "/get_server_info", "/server_info?config_format=json", "/metrics")
    with FakeServer(Fake(answers=dict.fromkeys(paths, page))) as server:
        assert "neither vLLM nor SGLang; it answered /v1/models with 200 a web page" in refused(
            record, server.url, tmp_path
        )
    with FakeServer(Fake(answers=dict.fromkeys(paths, (200, "application/json", b"[[[")))) as server:
        assert "neither vLLM nor SGLang" in refused(record, server.url, tmp_path)


def test_redirects_are_not_followed(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake()) as elsewhere:
        answers = {"/v1/models": (307, "text/plain", f"{elsewhere.url}/v1/models".encode())}
        with FakeServer(Fake(answers=answers)) as server:
            message = refused(record, server.url, tmp_path)
        assert elsewhere.asked == []
    assert "the server sends elsewhere" in message


def test_huge_answers_are_refused(tmp_path: Path, record: Record) -> None:
    answers = {"/v1/models": (200, "application/json", b"[" * (MOST_BYTES + 2))}
    with FakeServer(Fake(answers=answers)) as server:
        assert "longer than 8 MiB" in refused(record, server.url, tmp_path)


def test_a_store_that_is_there_stays_and_the_server_is_left_alone(tmp_path: Path, record: Record) -> None:
    (tmp_path / "run.ifm").mkdir()
    with FakeServer(Fake()) as server:
        with pytest.raises(InputError, match="already exists"):
            record(server.url)
        assert server.asked == []


def test_vllm_takes_no_number_of_steps(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake("vllm", tmp_path)) as server:
        assert "--seconds" in refused(record, server.url, tmp_path, steps=3, traces=tmp_path)
        assert "/start_profile" not in server.paths()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://h:1",
        "http://",
        "http://h:99999",
        "http://h/?q=1",
        "file:///etc/passwd",
        "http://h\n",
    ],
)
def test_what_is_no_address_of_a_server(url: str) -> None:
    with pytest.raises(InputError, match="the server: expected http://HOST:PORT"):
        Http(url)


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(InputError) as error:
        Http("http://me:hunter2@h:1")
    assert "hunter2" not in str(error.value)


def test_an_address_of_its_interface_is_that_of_the_server() -> None:
    assert Http("http://h:1/v1/").url == "http://h:1"
    assert Http("https://h/prefix/v1").url == "https://h/prefix"


# What goes wrong meanwhile


def test_a_server_that_dies_meanwhile_leaves_the_counters(tmp_path: Path, record: Record) -> None:
    def sleep(seconds: float) -> None:
        if len(server.scrapes) > 1:  # the first was answered by then
            server.die()
        time.sleep(seconds)

    with FakeServer(Fake()) as server:
        recording = record(server.url, seconds=30, waits=replace(QUICK, pace=replace(QUICK.pace, sleep=sleep)))
    assert any("doesn't answer any more" in what for what in recording.missing)
    assert recording.files == ()
    trace = inferometer.open(tmp_path / "run.ifm")
    assert "engine.requests_running" in rows(trace, "counters", "metric")
    assert any("doesn't answer any more" in note for note in trace.facts.notes)


def test_a_server_that_dies_as_it_stops(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(dies="at stop")) as server:
        recording = record(server.url)
    assert any("the end of the profile" in what for what in recording.missing)
    assert any("no new file" in what for what in recording.missing)
    assert inferometer.open(tmp_path / "run.ifm").counters.collect().height > 0


def test_a_file_that_was_not_written_whole_is_read_as_far_as_it_goes(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(dies="in a file", world=2)) as server:
        recording = record(server.url)
    assert len(recording.files) == 2
    assert sum("was not written whole" in what for what in recording.missing) == 2
    trace = inferometer.open(tmp_path / "run.ifm")
    assert counted(trace)["broken_compression"] == 2
    assert trace.ops.collect().height > 0
    assert recording.kept is not None
    assert len(list(Path(recording.kept).iterdir())) == 2, "what isn't whole in the store is kept"


def test_a_rank_without_a_file_is_said(record: Record) -> None:
    with FakeServer(Fake(world=4, lost=1)) as server:
        recording = record(server.url)
    assert [rank for rank, _ in recording.files] == [0, 1, 2]
    assert [what for what in recording.missing if "1 of 4 ranks" in what]


def test_no_files_leave_the_counters_and_say_where_to_look(tmp_path: Path, record: Record) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    elsewhere = tmp_path / "other"
    with FakeServer(Fake("vllm", elsewhere)) as server:
        recording = record(server.url, traces=folder)
    assert recording.files == ()
    assert any(f"no new file in {folder}" in what and "docker cp" in what for what in recording.missing)
    assert inferometer.open(tmp_path / "run.ifm").counters.collect().height > 0


def test_vllm_whose_folder_nobody_knows_is_profiled_all_the_same(
    tmp_path: Path, record: Record, told: list[str]
) -> None:
    with FakeServer(Fake("vllm", tmp_path / "hidden")) as server:
        recording = record(server.url)
    assert "/stop_profile" in server.paths()
    assert any("--traces DIR" in line for line in told)
    assert any("can't be seen from here" in what for what in recording.missing)


def test_a_server_elsewhere_is_profiled_into_a_folder_of_its_own(
    tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sampling", "place"):
        monkeypatch.setattr(f"inferometer.record.server.{module}.is_this_machine", lambda host: False)
    answers = {"/start_profile": (200, "text/plain", b"")}
    with FakeServer(Fake(answers=answers)) as server:
        recording = record(server.url)
    body = next(body for _, path, body in server.asked if path == "/start_profile")
    assert b'"output_dir":"/tmp/inferometer-' in body
    assert any("scp -r 127.0.0.1:/tmp/inferometer-" in what for what in recording.missing)
    assert any("not of the server's" in what for what in recording.missing)
    trace = inferometer.open(tmp_path / "run.ifm")
    assert "127.0.0.1" in rows(trace, "counters", "host"), "the engine's metrics are of its machine"
    ours = trace.counters.filter(~pl.col("metric").str.starts_with("engine.")).select("metric", "value").collect()
    assert set(ours.rows()) == {("load", 1.0)}, "nothing here tells the server's load from others'"


def test_files_of_two_recordings_at_once_are_not_mixed(tmp_path: Path, record: Record) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    with FakeServer(Fake("vllm", folder, pause_s=0.1)) as server, FakeServer(Fake("vllm", folder)) as other:
        started = Http(other.url)
        started.post("/start_profile", None, 5)
        timer = threading.Timer(0.1, lambda: started.post("/stop_profile", None, 5))
        timer.start()
        recording = record(server.url, traces=folder)
        timer.join()
    assert recording.files == ()
    assert any("of rank 0" in what for what in recording.missing)
    assert inferometer.open(tmp_path / "run.ifm").counters.collect().height > 0
    assert len(list(folder.iterdir())) == 2


def test_a_clock_that_is_not_ours_is_said(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(clock_off_ns=90_000_000_000)) as server:
        record(server.url)
    notes = inferometer.open(tmp_path / "run.ifm").facts.notes
    assert any("Device work lies up to 1" in note or "Device work lies up to 8" in note for note in notes), notes


def test_a_server_without_metrics_is_said_once(tmp_path: Path, record: Record) -> None:
    with FakeServer(Fake(metrics=False)) as server:
        recording = record(server.url)
    assert [what for what in recording.missing if "--enable-metrics" in what]
    assert len(recording.missing) == 1
    assert server.paths().count("/metrics") == 1
    assert set(rows(inferometer.open(tmp_path / "run.ifm"), "counters", "metric")) == {
        *("load", "process_load", "others_load"),
        *("runq_share", "cpu_limited_share", "cpu_stopped"),
    }


def test_a_store_is_there_while_the_recording_runs(tmp_path: Path, record: Record) -> None:
    seen: list[str | None] = []

    def sleep(seconds: float) -> None:
        if not seen:
            seen.append(inferometer.open(tmp_path / "run.ifm").facts.format)
        time.sleep(seconds)

    with FakeServer(Fake()) as server:
        record(server.url, waits=replace(QUICK, pace=replace(QUICK.pace, sleep=sleep)))
    assert seen == ["recording"]


# Parts


def test_metrics_of_vllm() -> None:
    values = {metric.name: value for metric, value in read_metrics(VLLM_METRICS).items()}
    assert values == {
        "engine.requests_running": 5,
        "engine.requests_waiting": 7,
        "engine.generated_tokens": 1500,
        "engine.kv_cache_usage": 25,
        "engine.time_to_first_token_sum": 12.5,
        "engine.time_to_first_token_count": 50,
    }
    assert labels_of(VLLM_METRICS, "vllm:cache_config_info")["num_gpu_blocks"] == "27543"


def test_metrics_of_sglang_count_the_first_rank_only() -> None:
    values = {metric.name: value for metric, value in read_metrics(SGLANG_METRICS).items()}
    assert values == {
        "engine.requests_running": 4,
        "engine.requests_waiting": 1,
        "engine.generated_tokens": 77,
        "engine.kv_cache_usage": 50,
        "engine.inter_token_latency_sum": 2.5,
        "engine.inter_token_latency_count": 100,
    }


def test_text_that_is_no_metrics_has_none() -> None:
    assert read_metrics("<html>") == {}
    assert read_metrics("vllm:num_requests_running{ 3\nvllm:num_requests_running three\nvllm:") == {}


def test_the_size_of_samples_is_bounded() -> None:
    sources = {name for metric in metrics.METRICS for name in metric.names}
    text = "".join(f'{source}{{engine="{i}"}} 1\n' for i in range(50) for source in sources)
    assert len(read_metrics(text)) <= len(metrics.METRICS) == 9


def test_addresses_of_this_machine() -> None:
    assert is_this_machine("127.0.0.1")
    assert is_this_machine("localhost")
    assert not is_this_machine("192.0.2.1"), "an address that documentation uses"
    assert not is_this_machine("no such name")


def test_processes_behind_a_port(tmp_path: Path) -> None:
    """A /proc made by hand: 10 listens, 11 is its child and shares the socket, 12 is a client, 13 is a proxy."""
    (tmp_path / "net").mkdir()
    line = "0: {address} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1"
    lines = [("0100007F:1F40", "0A", 71), ("0100007F:1F40", "01", 72), ("00000000:1F41", "0A", 73)]
    listed = [line.format(address=address, state=state, inode=inode) for address, state, inode in lines]
    (tmp_path / "net" / "tcp").write_text("\n".join(["sl local ...", *listed]))
    for process, inode, parent, command in (
        (10, 71, 1, "python"),
        (11, 71, 10, "vllm"),
        (12, 72, 1, "curl"),
        (13, 73, 1, "docker-proxy"),
    ):
        folder = tmp_path / str(process) / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to(f"socket:[{inode}]")
        (folder.parent / "stat").write_text(f"{process} (a) b)) S {parent} 0")
        (folder.parent / "cmdline").write_text(command)
    assert find_processes(8000, tmp_path) == (10,)
    assert find_processes(8001, tmp_path) == (), "docker-proxy is no engine"
    assert find_processes(8002, tmp_path) == ()
    assert find_processes(8000, tmp_path / "none") == ()


def test_a_packed_file_is_whole_when_its_last_member_is(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.json.gz"
    data = gzip.compress(b'{"traceEvents": []}')
    for size in range(0, len(data), 3):
        path.write_bytes(data[:size])
        assert not is_whole(path), size
    path.write_bytes(data)
    assert is_whole(path)
    path.write_bytes(b"\x1f\x8b" + b"\xff" * 100)
    assert not is_whole(path)
    assert not is_whole(tmp_path / "none.json")


def test_growing_files_are_waited_for(tmp_path: Path) -> None:
    """A fake clock: a file grows for 20 s, stands still before its end for 10 s, and ends."""
    import gzip

    path = tmp_path / "TP-0.json.gz"
    data = gzip.compress(b"".join(b"%d" % (i * i) for i in range(1000)) + b"}")
    now = 0.0
    ends: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        size = int(len(data) * (min(now, 20) / 30 if now < 30 else 1))
        if not path.exists() or path.stat().st_size != size:
            path.write_bytes(data[:size])
            ends[:] = [now]

    said: list[str] = []
    files = NewFiles(tmp_path, None, Pace(clock=lambda: now, sleep=sleep))
    found = files.wait(lambda: True, lambda: False, said.append)
    assert [path.name for path in found.ranks] == ["TP-0.json.gz"]
    assert not found.torn
    assert ends[0] < now < ends[0] + 10
    assert len(said) == 3, "a line each 10 s"


def test_a_plain_file_that_stops_behind_an_event_may_go_on(tmp_path: Path) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now == 3.0:
            path.write_text('{"traceEvents": [{"ts": 1}, {"ts": 2}]}')

    path = tmp_path / "TP-0.json"
    files = NewFiles(tmp_path, 1, Pace(clock=lambda: now, sleep=sleep))
    path.write_text('{"traceEvents": [{"ts": 1}')
    assert not files.wait(lambda: True, lambda: False, print).torn
    assert 8 <= now < 10


def test_a_file_that_never_ends_is_not_waited_for_longer_than_that(tmp_path: Path) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    files = NewFiles(tmp_path, 1, Pace(clock=lambda: now, sleep=sleep))
    (tmp_path / "TP-0.json.gz").write_bytes(b"\x1f\x8b")
    assert [path.name for path in files.wait(lambda: True, lambda: False, print).torn] == ["TP-0.json.gz"]
    assert 100 < now < 200
    now = 0.0
    files = NewFiles(tmp_path, 1, Pace(clock=lambda: now, sleep=sleep))
    (tmp_path / "TP-1.json.gz").write_bytes(b"\x1f\x8b")
    files.wait(lambda: True, lambda: True, print)
    assert now < 20, "a server that is gone writes no more"


def test_merged_copies_older_files_and_links_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "changed.json").write_text("{}")
    files = NewFiles(tmp_path, None, Pace())
    (tmp_path / "changed.json").write_text("{  }")
    (tmp_path / "merged-1.trace.json").write_text("{}")
    (tmp_path / "profiler_out_0.txt").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "old.json")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "TP-1.json").write_text("{}")
    files.look()
    assert [path.relative_to(tmp_path).as_posix() for path in files.found().ranks] == ["changed.json", "sub/TP-1.json"]


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_ENTRIES", 3)
    for i in range(4):
        (tmp_path / str(i)).touch()
    with pytest.raises(InputError, match="more than 3 files"):
        NewFiles(tmp_path, None, Pace())


@contextmanager
def raw_server(answer: bytes, *, drips: bool = False) -> Iterator[str]:
    """Something that listens and sends these bytes, and then a byte each 50 ms, or nothing."""
    over = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(5)

        def serve() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    connection.sendall(answer)
                    while not over.wait(0.05):
                        if drips:
                            connection.sendall(b" ")
                        elif answer:
                            return
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join(5)


def test_what_is_waited_for_is_told(tmp_path: Path) -> None:
    """Files that are whole aren't waited for: a server may take minutes for its answer after that."""
    now, said = 0.0, list[str]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    files = NewFiles(tmp_path, 1, Pace(clock=lambda: now, sleep=sleep))
    trace = tmp_path / "rank0.json.gz"

    def is_over() -> bool:
        if now > 25 and not trace.exists():
            trace.write_bytes(gzip.compress(b'{"traceEvents": []}'))
        return now > 60

    assert files.wait(is_over, lambda: False, said.append).ranks == [trace]
    assert said[0].startswith("waiting for traces to be written: 0 of 1 files whole, 0 MB, ")
    assert said[-1].startswith("waiting for the server to say that it has stopped: 1 of 1 files whole, 0 MB, ")
