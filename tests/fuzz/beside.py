"""What lies beside the traces, for the campaign: models, templates, tokenizers, outputs, servers, candidates.

Each `open_…` uses a damaged sample as its command does; none gives a trace. Whatever of ours it starts ends with it.
"""

import json
import os
import shutil
import socket
import stat
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.engines.chat.templates import STYLES
from tests.engines.webgpu.model_folders import save_model
from tests.kineto_files import kernel, write_file

import inferometer
from inferometer.bench.candidates import Candidate
from inferometer.engines.chat.tokens import read_tokenizer
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import InputError
from inferometer.operators import require_operator
from inferometer.record.server.engines import find_server
from inferometer.record.server.http import Http

Files = Mapping[str, bytes]

_TALK = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "héllo 🙂"})
_SHARE_RUN = 0.2  # of the candidates: torch takes two seconds to start
_ANSWER_S = 1.0


@cache
def model_folders() -> Sequence[Files]:
    found = []
    with TemporaryDirectory() as folder:
        for name in ("tiny-llama", "tiny-gemma3", "tiny-qwen2"):
            files = _files_in(save_model(Path(folder) / name, name), "model")
            found.append({**files, "model/generation_config.json": b'{"eos_token_id": [1, 2], "temperature": 0.7}'})
            names = [slot.tensor for slot in weight_slots(open_checkpoint(name).spec).values()]
            index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")}
            found.append({**files, "model/model.safetensors.index.json": json.dumps(index).encode()})
    return found


def open_model_folder(path: Path, rng: Random) -> None:
    checkpoint = open_checkpoint(str(path if path.is_dir() else path.parent))
    assert checkpoint.parameters > 0
    names = sorted(weight_slots(checkpoint.spec))
    for name in rng.sample(names, 2):
        rows = checkpoint.vector(name) if name.endswith(("norm", "bias")) else checkpoint.matrix(name)
        assert rows.size
    with suppress(InputError):  # there may be no tokenizer
        assert isinstance(checkpoint.tokenizer.chat(_TALK), list)


@cache
def chat_templates() -> Sequence[Files]:
    special = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    inside = [
        {
            **_tokenizer_files()[0],
            "model/tokenizer_config.json": json.dumps({**special, "chat_template": text}).encode(),
        }
        for text in STYLES.values()
    ]
    beside = [
        {**_tokenizer_files()[0], "model/chat_template.jinja": text.encode(),
         "model/tokenizer_config.json": json.dumps(special).encode()}
        for text in STYLES.values()
    ]  # fmt: skip
    return [*inside, *beside]


@cache
def _tokenizer_files() -> Sequence[Files]:
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = {token: i for i, token in enumerate(("<unk>", "<s>", "</s>", "he", "ll", "hell", "Ġ", *letters))}
    special = [{"id": i, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i, token in enumerate(("<unk>", "<s>", "</s>"))]  # fmt: skip
    models: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]] = [
        ({"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
          "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
          "merges": [["h", "e"], ["l", "l"], ["he", "ll"]]},
         {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
         {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}),
        ({"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
         {"type": "Split", "pattern": {"Regex": "\\s+|[a-z]+"}, "behavior": "Isolated", "invert": False}, None),
        ({"type": "Unigram", "unk_id": 0, "vocab": [[token, -float(i)] for token, i in vocabulary.items()],
          "byte_fallback": False},
         {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
         {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}),
        ({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 100, "vocab": vocabulary}, {"type": "BertPreTokenizer"}, None),
    ]  # fmt: skip
    common = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
              "post_processor": {"type": "TemplateProcessing", "single": [
                  {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                  "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}}  # fmt: skip
    return [
        {
            "model/tokenizer.json": json.dumps(
                {**common, "model": model, "pre_tokenizer": before, "decoder": after}
            ).encode()
        }
        for model, before, after in models
    ]


def tokenizers() -> Sequence[Files]:
    return _tokenizer_files()


def open_tokenizer(path: Path, rng: Random) -> None:
    """Also where a chat template lies next to it."""
    folder = path if path.is_dir() else path.parent
    tokenizer = read_tokenizer(folder, 4_096, {"eos_token_id": 2})
    for ids in (tokenizer.encode("hello héllo 🙂 " * rng.choice((1, 50))), tokenizer.chat(_TALK)):
        assert all(0 <= each < 4_096 for each in ids)
        assert isinstance(tokenizer.decode(ids), str)


@cache
def outputs() -> Sequence[Files]:
    """A trace, and what stands where something is written."""
    trace = write_file([kernel(f"k{i % 3}", str(100 + 3 * i), correlation=i) for i in range(20)])
    there = (b"", b"{}", b"<!doctype html><title>x</title>", b"name,value\n1,2\n", b"\0" * 64, b"#!/bin/sh\n")
    return [{"run/a.json": trace, "run/there": data} for data in there]


def open_output(path: Path, rng: Random) -> None:
    """Write over what is there, however it got there; nothing but a file of the same kind may have changed."""
    folder = path if path.is_dir() else path.parent
    trace = inferometer.open(folder / "a.json")
    there, aside = folder / "there", folder / "aside"
    aside.write_bytes(b"somebody's")
    kind = rng.choice(("file", "link", "pipe", "folder", "socket", "odd name"))
    if kind != "file" and there.is_dir() and not there.is_symlink():
        shutil.rmtree(there)
    elif kind != "file":
        there.unlink(missing_ok=True)
    if kind == "link":
        there.symlink_to(rng.choice(("aside", "/dev/null", "nowhere", "there")))
    elif kind == "pipe":
        os.mkfifo(there)
    elif kind == "folder":
        there.mkdir()
        (there / "mine.txt").write_text("mine")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(there))
    elif kind == "odd name":
        there = folder / rng.choice(("a\nb", "x" * 300, "\u202e", "no/where", "..", "a\0b", "=1+1"))
    before = _state_of(there)
    form = rng.choice(("perfetto", "chrome", "csv", "parquet", "store"))
    try:
        if form == "store":
            trace.save(there, force=rng.random() < 0.8)
        else:
            inferometer.export(trace, there, to=form, force=rng.random() < 0.8)
    finally:
        trace.close()
        assert aside.read_bytes() == b"somebody's"
        assert kind in ("file", "odd name") or _state_of(there) == before, f"{kind} was changed"
        assert not [each.name for each in folder.iterdir() if each.name.endswith((".part", ".old"))], "left-overs"


def _state_of(path: Path) -> object:
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(mode):
        return path.readlink()
    return stat.S_IFMT(mode), sorted(each.name for each in path.iterdir()) if stat.S_ISDIR(mode) else None


@cache
def servers() -> Sequence[Files]:
    """Answers of both engines' servers, a file each with its headers, and one that answers whatever is asked."""
    models = {"object": "list", "data": [{"id": "a/b", "owned_by": "vllm", "root": "a/b", "max_model_len": 4096}]}
    config = {"parallel_config": {"tensor_parallel_size": 2, "data_parallel_size": 1}, "dtype": "bfloat16"}
    metrics = b'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\nvllm:num_requests_running 1.0\n'
    info = {"model_path": "a/b", "version": "0.5.3", "tp_size": 2, "dp_size": 1, "internal_states": []}
    of_vllm = {
        "v1_models": _answer(json.dumps(models).encode()),
        "server_info": _answer(json.dumps({"vllm_config": config}).encode()),
        "version": _answer(b'{"version": "0.11.0"}'),
        "metrics": _answer(metrics, "text/plain"),
    }
    of_sglang = {
        "v1_models": _answer(json.dumps(models).replace("vllm", "sglang").encode()),
        "get_server_info": _answer(json.dumps(info).encode()),
    }
    named = [{f"answers/{name}": data for name, data in each.items()} for each in (of_vllm, of_sglang)]
    return [*named, {"answers/any": of_sglang["get_server_info"]}]


def _answer(body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def open_server(path: Path, _: Random) -> None:
    """Ask a server that gives the answers of these files."""
    folder = path if path.is_dir() else path.parent
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        connection.settimeout(0.5)
                        connection.sendall(_chosen(folder, connection.recv(65_536)))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            server = find_server(Http(f"http://127.0.0.1:{listening.getsockname()[1]}"), _ANSWER_S)
            assert server.name
        finally:
            stop.set()
            thread.join()


def _chosen(folder: Path, request: bytes) -> bytes:
    asked = request.split(b" ", 2)[1].decode().partition("?")[0].strip("/").replace("/", "_")
    for name in (asked, "any"):
        if (folder / name).is_file():
            return (folder / name).read_bytes()
    return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


_OURS = """
import torch


def rms_norm(x, weight, *, eps):
    wide = x.float()
    scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(x.dtype)
"""
_TRITONS = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))


def rms_norm(x, weight, *, eps):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)
"""


@cache
def candidates() -> Sequence[Files]:
    return [{"mine.py": text.encode()} for text in (_OURS, _TRITONS)]


def open_candidate(path: Path, rng: Random) -> None:
    """What is read of its file here; and of some, a call in its own process."""
    candidate = Candidate("mine.py", path)
    assert isinstance(candidate.own_kernels, frozenset)
    assert candidate.as_contender().sha256
    if rng.random() > _SHARE_RUN or find_spec("torch") is None:
        return
    import torch

    from inferometer.bench.failures import CandidateFailed
    from inferometer.bench.isolation import CandidateProcess, ProcessLimits, Session

    session = Session(require_operator("rms_norm"), candidate, limits=ProcessLimits(seconds=5))
    tensors = {"x": torch.ones(4, 64), "weight": torch.ones(64)}
    try:
        with CandidateProcess(session) as process:
            process.answer(tensors, {"eps": 1e-6})
    except CandidateFailed as error:
        raise InputError(f"mine.py: {error}") from error


def _files_in(folder: Path, called: str) -> Files:
    return {f"{called}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
