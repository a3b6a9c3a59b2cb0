"""One case of the campaign: a sample, what was done to it, and what came of it; the same for a seed and a number."""

import shutil
import time
import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
import polars as pl
from tests.fuzz import byte_damage, json_damage, parquet_damage, sql_damage, text_damage
from tests.fuzz.byte_damage import Damage
from tests.fuzz.questions import check_refusal, check_trace, question
from tests.fuzz.subjects import Files, Subject, subjects, write

from inferometer.errors import InputError, Unavailable

Kind = Literal["answer", "answer with losses", "refusal", "defect"]

_OF_POLARS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_NEW_NAMES = ("x", "rank7.json", "launches-00000.parquet", "StringIds.parquet", "facts.json", "\u202e.json")
LARGEST_BYTES = 4 << 20  # no further damage to what has grown so large
SHARE_WHOLE, SHARE_PACKED, SHARE_OF_THE_FOLDER, SHARE_ASKED = 0.01, 0.12, 0.15, 0.12


@dataclass(frozen=True)
class Case:
    """A subject's sample after `damages`, by the names of the functions that did them."""

    subject: Subject
    files: Files
    damages: Sequence[str]
    links: Files  # names that become links to these

    def __str__(self) -> str:
        return f"{self.subject.name} ({', '.join(self.files)}): {', '.join(self.damages) or 'whole'}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case. `asked`: the question beyond opening, if any. `where` names a defect in one line.

    `seconds` are of the processor: how long a case takes on a busy machine says nothing about it.
    """

    subject: str
    kind: Kind
    seconds: float
    asked: str | None = None
    where: str = ""
    text: str = ""


@cache
def _turns() -> tuple[Subject, ...]:
    """Subjects in the order of their turns, which mixes them."""
    turns = [subject for subject in subjects() for _ in range(subject.weight)]
    Random(0).shuffle(turns)
    return tuple(turns)


def rng_of(seed: int, number: int) -> Random:
    """Random numbers of this case alone."""
    return Random(f"{seed}/{number}")


def subject_of(number: int) -> Subject:
    """Which subject's turn the case is."""
    return _turns()[number % len(_turns())]


def make_case(seed: int, number: int) -> tuple[Case, Random]:
    """The case, and the random numbers that decide what is asked."""
    rng = rng_of(seed, number)
    return damage_sample(rng, subject_of(number)), rng


def damage_sample(rng: Random, subject: Subject) -> Case:
    """One of the subject's samples, damaged."""
    samples = subject.samples()
    files, done, links = dict(rng.choice(samples)), list[str](), dict[str, bytes]()
    if rng.random() < SHARE_WHOLE:
        return Case(subject, files, done, links)
    other = rng.choice(list(rng.choice(samples).values()))
    if len(files) > 1 and rng.random() < SHARE_OF_THE_FOLDER:
        done.append(_damage_folder(rng, files, links))
    else:
        for name in rng.sample(sorted(files), rng.choice((1, 1, 1, min(2, len(files))))):
            files[name] = _damage_file(rng, files[name], other, done)
        if subject.is_packable and rng.random() < SHARE_PACKED:
            name = rng.choice(sorted(files))
            files[name] = byte_damage.pack(rng, files[name], other)
            done.append("pack")
    if subject.is_sealed:
        _seal(files, done)
    return Case(subject, files, done, links)


def run_case(case: Case, rng: Random) -> Outcome:
    """Open it, look at every table, ask a question in some cases, and say what came of it."""
    began, asked = time.process_time(), None
    with TemporaryDirectory(prefix="fuzz-") as folder:
        path = write(case.files, Path(folder))
        for name, target in case.links.items():
            link = Path(folder) / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target.decode())
        kind: Kind = "answer"
        where = text = ""
        try:
            trace = case.subject.open(path, rng)
            if trace is not None:
                has_store = "store" in case.subject.name or any(".ifm/" in name for name in case.files)
                check_trace(trace, believed=has_store)  # a store's facts aren't sealed: a name of a loss may be damaged
                kind = "answer with losses" if trace.losses.total() else "answer"
                if rng.random() < SHARE_ASKED and not case.subject.is_sealed:
                    ask = question(rng)
                    asked = ask.__name__
                    ask(trace, Path(folder))
                trace.close()
        except _OF_POLARS as error:
            if not case.subject.is_sealed:
                kind, where, text = "defect", *_described(error)
            else:
                kind = "refusal"
        except (InputError, Unavailable) as error:
            kind = "refusal" if asked is None else kind
            try:
                check_refusal(error, never=case.subject.never_refuses)
            except AssertionError as defect:
                kind, where, text = "defect", *_described(defect)
        except Exception as error:  # noqa: BLE001  # what is sought
            kind, where, text = "defect", *_described(error)
    return Outcome(case.subject.name, kind, time.process_time() - began, asked, where, text)


def keep_case(case: Case, folder: Path) -> Path:
    """The damaged files in `folder`, to be looked at; the path to open."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return write(case.files, folder)


def _described(error: BaseException) -> tuple[str, str]:
    """The exception with the innermost place of ours, and the whole traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "inferometer" in frame.filename or "questions" in frame.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    first = (str(error).splitlines() or [""])[0][:160]
    return f"{type(error).__name__} at {place}: {first}", "".join(traceback.format_exception(error))[-6000:]


def _damage_file(rng: Random, data: bytes, other: bytes, done: list[str]) -> bytes:
    for i in range(rng.choice((1, 1, 1, 2, 3))):
        if len(data) > LARGEST_BYTES:
            break
        damage = rng.choice(_damages(rng, data, is_whole=i == 0))
        data = damage(rng, data, other)
        done.append(damage.__name__)
    return data


def _damages(rng: Random, data: bytes, *, is_whole: bool) -> Sequence[Damage]:
    if rng.random() < 0.35:
        return byte_damage.DAMAGES
    if sql_damage.is_sqlite(data):
        return sql_damage.DAMAGES
    if parquet_damage.is_parquet(data):
        return parquet_damage.DAMAGES if is_whole else parquet_damage.OF_BYTES  # others read the file, by Polars
    if rng.random() < 0.75 and json_damage.is_json(data):
        return json_damage.DAMAGES
    return text_damage.DAMAGES


def _damage_folder(rng: Random, files: dict[str, bytes], links: dict[str, bytes]) -> str:
    """Files of a folder are lost, empty, exchanged, renamed or links."""
    one, two = rng.sample(sorted(files), 2)
    change = rng.choice(("lose", "empty", "exchange", "copy", "rename", "link", "loop", "make_folder"))
    if change == "empty":
        files[one] = b""
    elif change == "exchange":
        files[one], files[two] = files[two], files[one]
    elif change == "copy":
        files[one] = files[two]
    elif change == "rename":
        files[str(Path(one).parent / rng.choice(_NEW_NAMES))] = files.pop(one)
    elif change == "make_folder":
        files[f"{one}/inside"] = files.pop(one)
    else:
        del files[one]
        if change != "lose":
            links[one] = (Path(two).name if change == "link" else Path(one).name).encode()
    return change


def _seal(files: dict[str, bytes], done: list[str]) -> None:
    """Give the manifest the checksums that a store's damaged files have: malice that checksums don't show."""
    for name, data in files.items():
        if not name.endswith("facts.json"):
            continue
        try:
            manifest = msgspec.json.decode(data)
            for table in manifest["tables"].values():
                table["crc32"] = [zlib.crc32(files[str(Path(name).parent / file)]) for file in table["files"]]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError):
            return
        files[name] = msgspec.json.encode(manifest)
        done.append("seal")
        return
