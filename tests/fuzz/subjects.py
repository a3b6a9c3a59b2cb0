"""What the campaign damages: small samples of everything that Inferometer reads, and how each is opened.

Every registered format is a subject, also one that nobody added here: its sample is the one of the conformance tests.
"""

import gzip
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
import polars as pl
from tests.conformance.samples import BESIDE, NAMES, SAMPLES
from tests.formats.kernel_table.test_tables import LAYOUTS as TABLE_LAYOUTS
from tests.fuzz.beside import candidates, models, outputs, servers
from tests.kineto_files import LAYOUTS, kernel, write_file
from tools.make_serving import Options, make_result

import inferometer
from inferometer import Trace
from inferometer.architectures.config import open_config
from inferometer.architectures.known import bundled_models, read_model
from inferometer.architectures.limits import require_sizes
from inferometer.architectures.steps import count_parameters, step_calls
from inferometer.formats.base import known_formats
from inferometer.formats.serving_results import read_serving, read_serving_runs
from inferometer.hardware.device_file import read_device
from inferometer.hardware.known import devices
from inferometer.names import canonical_name, decode

Files = Mapping[str, bytes]
"""A sample: a file, or several in one folder, by their paths in it."""

_USUAL_WEIGHT = 6
_WEIGHTS = {
    "kineto": 20,
    "nsys": 7,
    "nsys-parquetdir": 4,
    "kernel-table": 19,
    "latencyprism": 10,
    "webgpu-log": 12,
    "ranks": 3,
    "store": 5,
    "store-sealed": 4,
    "model-config": 4,
    "device-file": 3,
    "serving-result": 4,
    "kernel-names": 4,
    "model-folder": 4,
    "chat-template": 2,
    "tokenizer": 2,
    "output": 4,
    "dataset": 1,
    "server": 2,
    "candidate": 1,
}


@dataclass(frozen=True)
class Subject:
    """One kind of input.

    `samples` are whole; `open` gives a trace, or None where there is none to ask. A subject that `never_refuses` has an
    answer for anything. `is_packable` says whether compressed input is read. A store that `is_sealed` gets checksums
    that fit its damaged files: what it holds may not be as declared, and Polars may be the one to refuse it.
    """

    name: str
    samples: Callable[[], Sequence[Files]]
    open: Callable[[Path, Random], Trace | None]
    never_refuses: bool = False
    is_packable: bool = True
    is_sealed: bool = False
    format: str | None = None

    @property
    def weight(self) -> int:
        """How often it is damaged, out of the sum of all weights."""
        return _WEIGHTS.get(self.name, _USUAL_WEIGHT)


@cache
def subjects() -> tuple[Subject, ...]:
    """All of them."""
    formats = [
        Subject(name, cache(partial(_samples_of, name)), _open_as(name), format=name) for name in known_formats()
    ]
    return (
        *formats,
        Subject("nsys-parquetdir", _parquetdirs, _open_as(None), is_packable=False),
        Subject("ranks", _ranks, _open_as(None)),
        Subject("store", _stores, _open_as(None), is_packable=False),
        Subject("store-sealed", _stores, _open_as(None), is_packable=False, is_sealed=True),
        Subject("model-config", _configs, _open_config, is_packable=False),
        Subject("device-file", _devices, _open_device, is_packable=False),
        Subject("serving-result", _servings, _open_serving),
        Subject("kernel-names", _names, _open_names, never_refuses=True, is_packable=False),
        Subject("model-folder", models.model_folders, models.open_model_folder, is_packable=False),
        Subject("chat-template", models.chat_templates, models.open_tokenizer, is_packable=False),
        Subject("tokenizer", models.tokenizers, models.open_tokenizer, is_packable=False),
        Subject("output", outputs.outputs, outputs.open_output, is_packable=False),
        Subject("dataset", outputs.datasets, outputs.open_dataset, is_packable=False),
        Subject("server", servers.servers, servers.open_server, is_packable=False),
        Subject("candidate", candidates.candidates, candidates.open_candidate, is_packable=False),
    )


def write(files: Files, folder: Path) -> Path:
    """The sample in `folder`; the path to open."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    tops = {Path(name).parts[0] for name in files}
    return folder / tops.pop() if len(tops) == 1 else folder


def _open_as(name: str | None) -> Callable[[Path, Random], Trace]:
    """By sniffing or by name, all tables or some."""

    def open_trace(path: Path, rng: Random) -> Trace:
        named = name if rng.random() < 0.5 else None
        tables = {"launches"} if rng.random() < 0.15 else None
        return inferometer.open(path, tables, format=named)

    return open_trace


def _open_config(path: Path, rng: Random) -> None:
    require_sizes(open_config(path).whole, "config.json")
    model = read_model(path)
    calls = step_calls(model, tokens=rng.choice((1, 7)), context=rng.choice((0, 4096)), batch=rng.choice((1, 64)))
    assert all(call.flops >= 0 and call.read_bytes >= 0 for call in calls)
    assert count_parameters(model) > 0


def _open_device(path: Path, _: Random) -> None:
    device = read_device(path)
    msgspec.json.encode(device)


def _open_serving(path: Path, rng: Random) -> None:
    found = list(read_serving_runs(path))
    assert found
    if rng.random() < 0.5:
        found = [read_serving(path, run=rng.randrange(len(found)))]
    for serving in found:
        assert serving.describe()
        json.dumps(serving.as_json(), allow_nan=False)


def _open_names(path: Path, _: Random) -> None:
    """As `names decode` reads them from a pipe."""
    for line in path.read_bytes().splitlines()[:50]:
        name = line.decode("utf-8", "replace")
        known = decode(name)
        json.dumps(known.as_json(), allow_nan=False)
        canonical_name(name)


def _samples_of(format_name: str) -> Sequence[Files]:
    fmt = known_formats()[format_name]
    name, data = NAMES.get(format_name, f"sample{fmt.suffixes[0]}"), SAMPLES[format_name]()
    samples: list[Files] = [{name: data}, *({name: each} for each in _MORE.get(format_name, list)())]
    if beside := BESIDE.get(format_name, {}):
        others = {other: make() for other, make in beside.items()}
        samples += [{name: data, **others}, *({other: content} for other, content in others.items())]
    return samples


def _kineto() -> list[bytes]:
    events = json.loads(SAMPLES["kineto"]())["traceEvents"]
    objects = [write_file(events, layout) for layout in LAYOUTS.values()]
    launches = write_file([kernel(f"k{i % 3}", str(100 + 3 * i), correlation=i) for i in range(40)])
    of_two_ranks = b"[" + b",".join(_of_rank(rank) for rank in (0, 1)) + b"]"
    return [*objects, launches, json.dumps(events).encode(), of_two_ranks, _of_rank(3)]


def _of_rank(rank: int) -> bytes:
    collectives = [kernel(f"ncclDevKernel_AllReduce_{i}", str(100 + 10 * i + rank), correlation=i) for i in range(6)]
    info = {"rank": rank, "world_size": 2}
    return write_file([kernel("gemm", "90"), *collectives], before={"schemaVersion": 1, "distributedInfo": info})


def _nsys() -> list[bytes]:
    """The export with an index, in pages of another size."""
    database = sqlite3.connect(":memory:")
    database.deserialize(SAMPLES["nsys"]())
    database.execute("CREATE INDEX i ON StringIds (id)")
    database.commit()
    data = bytes(database.serialize())
    database.close()
    return [data]


_MORE: Mapping[str, Callable[[], list[bytes]]] = {
    "kineto": _kineto,
    "nsys": _nsys,
    "kernel-table": lambda: [text.encode() for text in TABLE_LAYOUTS.values()],
}


@cache
def _parquetdirs() -> Sequence[Files]:
    database = sqlite3.connect(":memory:")
    database.deserialize(SAMPLES["nsys"]())
    database.row_factory = sqlite3.Row
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
    with TemporaryDirectory() as folder:
        for table in tables:
            rows = [dict(row) for row in database.execute(f'SELECT * FROM "{table}"')]
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(Path(folder) / f"{table}.parquet")
        files = _files_in(Path(folder), "export")
    database.close()
    small = {name: data for name, data in files.items() if "KERNEL" in name or "StringIds" in name}
    return [files, small]


@cache
def _ranks() -> Sequence[Files]:
    ranks = {f"run/rank{rank}.json": _of_rank(rank) for rank in (0, 1)}
    mixed = {"run/a_rank0.json.gz": gzip.compress(_of_rank(0), 1, mtime=0), "run/a_rank1.sqlite": SAMPLES["nsys"]()}
    store = {name.replace("a.ifm", "run/rank1.ifm"): data for name, data in _stores()[0].items()}
    unnamed = {f"run/worker_{i}.json": SAMPLES["kineto"]() for i in range(3)}
    return [ranks, mixed, {"run/rank0.json": _of_rank(0), **store}, unnamed]


@cache
def _stores() -> Sequence[Files]:
    stores = []
    with TemporaryDirectory() as folder:
        for name, sample in SAMPLES.items():
            path = write({NAMES.get(name, name): sample()}, Path(folder))
            inferometer.import_trace(path, Path(folder) / f"{name}.ifm")
            stores.append(_files_in(Path(folder) / f"{name}.ifm", "a.ifm"))
    return stores


def _files_in(folder: Path, called: str) -> Files:
    return {f"{called}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}


@cache
def _configs() -> Sequence[Files]:
    return [{"config.json": json.dumps(bundled.config).encode()} for bundled in bundled_models()]


@cache
def _devices() -> Sequence[Files]:
    chosen = sorted(devices(), key=lambda device: device.name)[::9]
    return [{"device.json": msgspec.json.encode(device)} for device in chosen]


@cache
def _servings() -> Sequence[Files]:
    """Results of both tools with and without details, and several in one file."""
    made = [make_result(Options(tool=tool, requests=3, output=5)) for tool in ("vllm", "sglang")]
    plain = [{key: value for key, value in each.items() if not isinstance(value, list)} for each in made]
    return [
        *({"result.json": json.dumps(each).encode()} for each in (*made, *plain)),
        {"result.jsonl": b"\n".join(json.dumps(each).encode() for each in (*made, *plain))},
    ]


@cache
def _names() -> Sequence[Files]:
    return [{"names.txt": name.encode()} for name in _KERNELS]


_KERNELS = (
    "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8EEvNT_6ParamsE",
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>"
        "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
    ),
    "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
    "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI32x32x8x1_SE_K1",
    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>>",
    "_ZN5aiter50fmha_fwd_hd128_bf16_causal_rtneE",
    "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP32VarSeqQ128Kv128StaticContext",
    "void cub::CUB_200200_900_NS::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy900, int const*, int*>(int)",
    "void (anonymous namespace)::elementwise_kernel<__nv_bfloat16, {lambda(int)#1}>(int)",
    "Memcpy HtoD (Pageable -> Device)",
    "matmul:q_proj:L12",
    "_fused_moe_kernel_gptq_awq.kd [clone .kd]",
    "mul_mat_vec_q<(ggml_type)12, 4, false>(void const*, float*, int)",
    "_Z1f1xMS_S_MS0_S0_MS1_S1_MS2_S2_MS3_S3_MS4_S4_MS5_S5_MS6_S6_MS7_S7_MS8_S8_MS9_S9_MSA_SA_MSB_SB_MSC_SC_MSD_SD_",
    f"_Z1fN{('1000' + 'a' * 1_000) * 3}E1BIS1_S1_S1_ES3_IS4_S4_S4_ES3_IS5_S5_S5_ES3_IS6_S6_S6_ES3_IS7_S7_S7_E",
)
