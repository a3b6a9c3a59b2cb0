"""Headers that claim what can't be are refused; files that are whole are not, whoever wrote them and however."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from inferometer.trace.parquet_pages import ImpossibleParquet, check_parquet

FRAME = pl.DataFrame({"a": range(60), "s": [f"n{i % 5}" for i in range(60)], "n": [None, 1] * 30, "none": [None] * 60})
CODECS: tuple[Any, ...] = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")


def written(folder: Path, frame: pl.DataFrame = FRAME, **options: Any) -> Path:
    path = folder / "a.parquet"
    frame.write_parquet(path, **options)
    return path


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rows", [0, 1, 60])
@pytest.mark.parametrize("row_group", [None, 7])
def test_whole_files_of_polars_pass(codec: Any, rows: int, row_group: int | None, tmp_path: Path) -> None:
    nested = FRAME.with_columns(l=pl.concat_list("a", "n"), t=pl.struct("a", "s"))
    options = {"compression": codec, "row_group_size": row_group, "data_page_size": 64}
    check_parquet(written(tmp_path, nested.head(rows), **options))


@pytest.mark.parametrize("codec", ["snappy", "zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("rows", [0, 60])
def test_whole_files_of_arrow_pass(codec: str, version: str, dictionary: bool, rows: int, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow isn't installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({name: FRAME[name].to_list()[:rows] for name in FRAME.columns} | {"l": [[1, None]] * rows})
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": codec}
    parquet.write_table(table, tmp_path / "a.parquet", write_page_index=True, data_page_size=64, **options)
    check_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (slice(0, 0), "the file is empty"),
        (slice(0, 5), "expected PAR1 at its beginning and its end"),
        (slice(0, -1), "expected PAR1 at its beginning and its end"),
        (slice(1, None), "expected PAR1 at its beginning and its end"),
    ],
)
def test_a_part_of_a_file_is_refused(cut: slice, message: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[cut])
    with pytest.raises(ImpossibleParquet, match=message):
        check_parquet(path)


def test_a_footer_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-8] + (1 << 31).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ImpossibleParquet, match=r"the footer claims 2,147,483,648 bytes of a file of"):
        check_parquet(path)


def test_a_page_of_less_than_no_bytes_is_refused_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, FRAME.select("a"), compression="uncompressed")
    data = bytearray(path.read_bytes())
    assert data[4:7] == b"\x15\x04\x15", "a page's header: its type, a dictionary, then its bytes"
    data[7] |= 1  # the lowest bit is the sign
    path.write_bytes(data)
    with pytest.raises(
        ImpossibleParquet, match=r"row group 0, column 0, page at byte 4: uncompressed bytes: expected 0 to"
    ):
        check_parquet(path)


CHILD = """
import resource, sys
from pathlib import Path
import polars as pl
from inferometer.trace.parquet_pages import ImpossibleParquet, check_parquet
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
whole, path, read = Path(sys.argv[1]).read_bytes(), Path(sys.argv[1] + ".damaged"), 0
for at in range(len(whole)):
    for byte in (whole[at] ^ 1, whole[at] ^ 128):
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        try:
            check_parquet(path)
            read += pl.read_parquet(path).height > 0
        except (ImpossibleParquet, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            pass
print(read)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of the process is limited as Linux does it")
def test_no_byte_makes_polars_end_the_process_once_the_headers_were_read(tmp_path: Path) -> None:
    path = written(tmp_path, FRAME.select("s", "n"), compression="uncompressed")
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100, "damage of values alone can't be seen"
