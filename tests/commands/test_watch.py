"""`inferometer watch` of recordings: played through, followed, refused."""

import json
import threading
import time
from pathlib import Path

import pytest
from benchmarks.watch_pairs import joined
from tests.watch.streams import RECORDED, made, one_after_another, run_watch

from inferometer.record.journal.journal import Journal
from inferometer.watch.following import Following
from inferometer.watch.steps import WatchedStep


@pytest.fixture(scope="module")
def contended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = RECORDED / "cpu_contention"
    normal, fault = folder / "normal.ifm", folder / "fault.ifm"
    return joined(normal, fault, normal).save(tmp_path_factory.mktemp("watch") / "run.ifm")


def test_a_recording_is_played_through(contended: Path) -> None:
    code, out, err = run_watch(contended, "--fail-on", "alarm", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["state"], found["steps"], found["judged"]) == ("normal", 748, 718)
    (slow,) = found["slowdowns"]
    steps = sorted(json.loads(run_watch(contended, "--no-why", "--json")[1])["slowdowns"][0]["since_interval_ns"])
    assert slow["since_interval_ns"] == steps
    assert slow["why"]["metric"] == "others_cpu_usage"
    assert found["remarks"][0].startswith("Slow since 3.99")
    assert err == ""


def test_the_ratio_is_that_of_the_sums(contended: Path) -> None:
    import inferometer

    slow = json.loads(run_watch(contended, "--json", "--no-why")[1])["slowdowns"][0]
    steps = inferometer.open(contended).steps.sort("start_ns").collect()
    first, count = slow["step"], slow["phases"][0]["steps"]
    took = steps["dur_ns"][first : first + count]
    normal = steps["dur_ns"][:first].median()
    assert slow["phases"][0]["ratio"] == pytest.approx(took.mean() / normal, rel=0.02)  # type: ignore[operator]
    assert slow["recovered_ns"] == steps["start_ns"][first + count]


def test_without_an_alarm_the_exit_code_is_0() -> None:
    code, out, err = run_watch(RECORDED / "none" / "normal.ifm", "--fail-on", "alarm")
    assert (code, err) == (0, "")
    assert "No slowdown of 5.0 % or more was seen." in out


def test_a_recording_that_is_being_written_is_followed(tmp_path: Path) -> None:
    steps = [*one_after_another(made(300), made(100, ms=25, seed=1))]

    def write() -> None:
        with Journal(tmp_path / "run.ifm", flush_s=0.1) as journal:
            begun.set()
            for first in range(0, len(steps), 100):
                _write(journal, steps[first : first + 100])
                time.sleep(0.3)

    begun = threading.Event()
    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    code, out, err = run_watch(tmp_path / "run.ifm", "--json", "--fail-on", "alarm")
    thread.join()
    found = json.loads(out)
    assert (code, found["steps"], found["state"]) == (1, 400, "slow")
    assert abs(found["slowdowns"][0]["step"] - 300) <= 1
    assert "Slow since" in err


def test_a_process_that_joins_later_makes_no_step_twice(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.ifm", flush_s=0.05) as journal:
        _write(journal, made(40), process=11)
        journal.flush()
        following = Following(tmp_path / "run.ifm")
        first = following.look()
        _write(journal, made(40, seed=1), process=12)
        journal.flush()
        second = following.look()
    assert {step.owner for step in first} == {"process 11"}
    assert (len(first), {step.owner for step in second}, len(second)) == (40, {"process 12"}, 40)


def _write(journal: Journal, steps: list[WatchedStep], *, process: int | None = None) -> None:
    times = {name: [getattr(step, name) for step in steps] for name in ("start_ns", "dur_ns")}
    journal.add("steps", len(steps), {**times, "phase": "decode", "process": process})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((RECORDED / "none" / "normal.ifm", "--for", "10m"), 2, "--for goes with an engine"),
        ((RECORDED / "none" / "normal.ifm", "-o", "x.ifm"), 2, "-o goes with an engine"),
        ((RECORDED / "none" / "normal.ifm", "--min-slowdown", "-1"), 2, "--min-slowdown"),
        ((RECORDED / "none" / "normal.ifm", "--listen", "127.0.0.1:0"), 2, "--listen goes with an engine"),
        ((RECORDED / "none" / "normal.ifm", "--webhook", "http://h/x"), 2, "--webhook goes with an engine"),
        ((RECORDED / "none" / "normal.ifm", "--profile-on-alarm"), 2, "--profile-on-alarm goes with an engine"),
        (("http://127.0.0.1:9", "--profile-on-alarm"), 2, "needs -o"),
        (("http://127.0.0.1:9", "--hz", "0"), 2, "--hz"),
        (("http://127.0.0.1:9", "--for", "1", "--webhook", "h"), 3, "the webhook: expected http:// or https://"),
        (("http://127.0.0.1:9", "--for", "1", "--listen", "h"), 3, "--listen: expected HOST:PORT"),
        (("http://127.0.0.1:9", "--for", "1", "--report", __file__), 3, "expected a folder for pages"),
        (("http://127.0.0.1:9", "--for", "soon"), 2, "expected a duration"),
        (("http://127.0.0.1:9", "--for", "-5"), 2, "above 0"),
        (("http://u:p@127.0.0.1:9", "--for", "1"), 3, "holds a name or password"),
        (("no-such-file",), 3, "no-such-file"),
    ],
)
def test_what_cannot_be_watched(words: tuple[object, ...], code: int, said: str) -> None:
    found = run_watch(*words)
    assert found[0] == code, found
    assert said in found[1] + found[2]


def test_a_source_without_steps(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"Name","Total Time (ns)","Instances"\nk,10,1\n')
    code, _, err = run_watch(path)
    assert code == 3
    assert "steps" in err


def test_an_address_in_the_environment_is_for_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFEROMETER_WEBHOOK", "no address at all")
    assert run_watch(RECORDED / "none" / "normal.ifm")[0] == 0


def test_a_recording_that_is_over_has_its_pages_too(contended: Path, tmp_path: Path) -> None:
    code, _, err = run_watch(contended, "--report", tmp_path / "pages")
    page = tmp_path / "pages" / "slowdown-1.html"
    assert (code, err) == (0, f"Written: {page}\n")
    assert "others_cpu_usage" in page.read_text("utf-8")
