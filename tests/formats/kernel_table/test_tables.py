"""Tables in every layout that people meet: the same rows, exact, with what they don't print left null."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.traces import counted, rows

from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.kernel_table import FORMAT

Read = Callable[..., Trace]
NAME = "void at::native::copy<(int)4, std::array<char *, 2>>(int, T2)"
FIRST = (0, NAME, 192, 1_266_000_000)
SECOND = (0, "gemm_k", 3, 960)

TSV = f"Time\tTotal Time\tInstances\tName\n57.0%\t1.266 s\t192\t{NAME}\n0.0%\t960 ns\t3\tgemm_k"
CSV = f'Time (%),Total Time (ns),Instances,Avg (ns),Name\n57.0,1266000000,192,1.5,"{NAME}"\n0.0,960,3,320.0,"gemm_k"\n'
BARE_CSV = f"Time (%),Total Time (ns),Instances,Name\n57.0,1266000000,192,{NAME}\n0.0,960,3,gemm_k\n"
ALIGNED = f"""
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances   Avg (ns)                                 Name
 --------  ---------------  ---------  -----------  -------------------------------------------------------------
     57.0    1,266,000,000        192  6,593,750.0  {NAME}
      0.0              960          3        320.0  gemm_k
"""
OLD = f"""
Time(%)      Total Time  Instances         Average         Minimum         Maximum  Name
-------  --------------  ---------  --------------  --------------  --------------  ----
   57.0      1266000000        192         6593750               1               2  {NAME}
    0.0             960          3             320             100             500  gemm_k
"""
MARKDOWN = r"""
### Kernels

| Time | Total Time | Instances | Name |
|---:|---:|---:|---|
| 57.0 % | 1.266 s | 192 | void at::native::copy\<(int)4, std::array\<char \*, 2\>\>(int, T2) |
| 0.0 % | 960 ns | 3 | `gemm_k` |
"""
TERMINAL = f"""Kernels
  Time   Total Time   Instances   Name
──────────────────────────────────────
57.0 %      1.266 s         192   {NAME}
 0.0 %       960 ns           3   gemm_k

• 2 of 5 rows shown, 57.0 % of the kernel time.
"""
BARS = f"""
 Name | Total Time (s) | Instances | Min
------+----------------+-----------+-----
 {NAME} | 1.266 | 192 | -
 gemm_k | 0.000000960 | 3 | 1 ns
"""
SEMICOLONS = f"Name;Instances;Total Time (us)\n{NAME};192;1266000\ngemm_k;3;0.96\n"
LAYOUTS = {
    "tsv": TSV,
    "csv": CSV,
    "csv without quotes": BARE_CSV,
    "aligned": ALIGNED,
    "aligned without its ruler": "\n".join(line for line in ALIGNED.split("\n") if "----" not in line),
    "of an older version": OLD,
    "markdown": MARKDOWN,
    "terminal": TERMINAL,
    "bars": BARS,
    "semicolons": SEMICOLONS,
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_rows(text: str, read: Read) -> None:
    assert FORMAT.sniff(text.encode())
    trace = read(text, name="table.txt")
    assert rows(trace, "totals", "section", "kernel", "count", "total_ns") == [FIRST, SECOND]
    assert trace.losses.seen["totals"] == 2
    assert trace.losses.dropped() == 0


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.replace("\n", "\r\n").encode("utf-16-be"),
    ],
    ids=["utf-8 mark", "crlf", "utf-16", "utf-16 big end first, crlf"],
)
@pytest.mark.parametrize("text", [TSV, CSV, ALIGNED, MARKDOWN], ids=["tsv", "csv", "aligned", "markdown"])
def test_every_usual_encoding_is_read(text: str, encode: Callable[[str], bytes], read: Read) -> None:
    data = encode(text)
    assert FORMAT.sniff(data)
    assert rows(read(data), "totals", "section", "kernel", "count", "total_ns") == [FIRST, SECOND]


def test_statistics_are_exact_and_those_that_are_not_printed_null(read: Read) -> None:
    text = """\
Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
169684,3,511.9453095790604,84362.5,1,84724,0.1,a
5,,,,,,,b
"""
    columns = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns", "resolution_ns")
    assert rows(read(text), "totals", *columns) == [
        (3, 169_684, 511.9453095790604, 84_362.5, 1, 84_724, 0.1, None),
        (None, 5, None, None, None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("title", "cell", "total_ns", "resolution_ns"),
    [
        ("Total Time", "1.266 s", 1_266_000_000, 500_000),
        ("Total Time", "163.659 ms", 163_659_000, 500),
        ("Total Time", "84.724 μs", 84_724, 0.5),
        ("Total Time", "84.724 µs", 84_724, 0.5),
        ("Total Time", "960 ns", 960, None),
        ("Total Time", "960", 960, None),
        ("Total Time (ns)", "1,266,000", 1_266_000, None),
        ("Total Time (ns)", "1266.0", 1_266, None),
        ("Total Time (ns)", "1266.4", 1_266, 0.5),
        ("Total Time (ns)", "3e3", 3_000, 500),
        ("Total Time (us)", "84.724", 84_724, 0.5),
        ("Total Time (ms)", "2", 2_000_000, 500_000),
        ("Total Time (s)", "1.5", 1_500_000_000, 50_000_000),
        ("Total Time (s)", "7 ns", 7, None),
    ],
)
def test_a_total_says_how_finely_it_was_printed(
    title: str, cell: str, total_ns: int, resolution_ns: float | None, read: Read
) -> None:
    trace = read(f"Name\t{title}\tInstances\nk\t{cell}\t1\n")
    assert rows(trace, "totals", "total_ns", "resolution_ns") == [(total_ns, resolution_ns)]
    assert counted(trace) == ({"unit_assumed": 1} if (title, cell) == ("Total Time", "960") else {})


def test_blanks_around_cells_are_for_the_eye_where_titles_have_them_too(read: Read) -> None:
    padded = "Time\tTotal Time\tInstances\t    Name\n0.0%\t42.368 μs\t30\t            clamp\n"
    assert rows(read(padded), "totals", "kernel") == ["clamp"]
    assert rows(read(padded.replace("    Name", "Name")), "totals", "kernel") == ["            clamp"]
    spaced = 'Total Time (ns), Instances, Name\n1, 2, "void f<a, b>()"\n'
    assert rows(read(spaced), "totals", "kernel") == ["void f<a, b>()"]


def test_each_table_is_a_section_with_its_own_columns(read: Read) -> None:
    text = f"{TSV}\n\nfree text\n{MARKDOWN}\nName\tInstances\tMax\nlast\t7\t9 ns\n"
    trace = read(text)
    assert rows(trace, "totals", "section", "kernel", "total_ns", "max_ns") == [
        (0, NAME, 1_266_000_000, None),
        (0, "gemm_k", 960, None),
        (1, NAME, 1_266_000_000, None),
        (1, "gemm_k", 960, None),
        (2, "last", None, 9),
    ]
    assert "free text" in rows(trace, "log", "text")


def test_a_blank_line_inside_a_table_does_not_end_it(read: Read) -> None:
    assert rows(read("Name\tTotal Time\tInstances\na\t1 ns\t1\n\nb\t2 ns\t1\n"), "totals", "section", "kernel") == [
        (0, "a"),
        (0, "b"),
    ]


NSYS = """\
Processing [r.sqlite] with [/opt/reports/cuda_api_sum.py]...

 ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ns)  Num Calls  Avg (ns)           Name
 --------  ---------------  ---------  --------  ----------------------
     72.9          934,121         48  19,460.9  cudaMemcpyAsync
     11.0          172,000        100   1,720.0  cudaLaunchKernel_v7000

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)        Name
 --------  ---------------  ---------  ---------  ----------------
    100.0        3,000,000          2  1,500,000  gemm  with  blanks

 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

 Time (%)  Total Time (ns)  Count  Avg (ns)           Operation
 --------  ---------------  -----  --------  ----------------------------
    100.0        1,234,567     10  123,456.7  [CUDA memcpy Host-to-Device]

 ** CUDA GPU MemOps Summary (by Size) (cuda_gpu_mem_size_sum):

 Total (MB)  Count  Avg (MB)  Med (MB)           Operation
 ----------  -----  --------  --------  ----------------------------
     12.000     10     1.200     1.200  [CUDA memcpy Host-to-Device]

 ** MPI Event Summary (mpi_event_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)    Name
 --------  ---------------  ---------  --------  --------
    100.0            1,000          1     1,000  MPI_Send
"""


def test_tables_of_other_reports_are_kept_as_text_and_counted_by_report(read: Read) -> None:
    trace = read(NSYS)
    assert rows(trace, "totals", "section", "kernel", "total_ns") == [(0, "gemm  with  blanks", 3_000_000)]
    lost = {loss.category: loss.count for loss in trace.losses if loss.name == "row_of_something_else"}
    assert lost == {"cuda_api_sum": 2, "cuda_gpu_mem_time_sum": 1, "cuda_gpu_mem_size_sum": 1, "mpi_event_sum": 1}
    text = rows(trace, "log", "text")
    assert sorted([*text, NSYS.splitlines()[13]]) == sorted(filter(str.strip, NSYS.splitlines()))
    assert trace.facts.tool == "Nsight Systems"


def test_the_tool_is_named_only_where_the_text_proves_it(read: Read) -> None:
    assert read(CSV).facts.tool is None
    assert read(ALIGNED).facts.tool == "Nsight Systems"


def test_rows_about_copies_in_our_own_table_are_no_kernels(read: Read) -> None:
    text = "Time (%),Total Time (ns),Instances,Kind,Name\n60,6,1,kernel,a\n40,4,1,memcpy,Memcpy HtoD\n"
    trace = read(text)
    assert rows(trace, "totals", "kernel") == ["a"]
    assert counted(trace) == {"row_of_something_else": 1}
    assert trace.losses.seen["totals"] == 2
    assert "40,4,1,memcpy,Memcpy HtoD" in rows(trace, "log", "text")


def test_a_column_without_a_place_is_counted(read: Read) -> None:
    trace = read('Total Time (ns),Instances,GridXYZ,Name\n1,2,"8, 1, 1",k\n')
    assert rows(trace, "totals", "kernel", "count") == [("k", 2)]
    assert [(loss.name, loss.example) for loss in trace.losses] == [("unknown_column", "line 1: GridXYZ")]


@pytest.mark.parametrize("name", ["void gemm<float>(flo…", "cutlass::device_kernel<..."])
def test_a_name_cut_short_is_counted(name: str, read: Read) -> None:
    trace = read(f"Name\tTotal Time\tInstances\n{name}\t1 ns\t1\nwhole(int, ...)\t1 ns\t1\n")
    assert counted(trace) == {"name_cut": 1}
    assert rows(trace, "totals", "kernel") == [name, "whole(int, ...)"]


def test_a_share_that_the_rows_do_not_make_marks_an_excerpt(read: Read) -> None:
    head, first, second = "Time\tTotal Time\tInstances\tName\n", "75.0%\t3.000 us\t1\ta\n", "25.0%\t1.000 us\t1\tb\n"
    assert counted(read(head + first + second)) == {}
    excerpt = read(head + second)
    assert [(loss.name, loss.example) for loss in excerpt.losses] == [
        ("share_disagrees", "line 2: 25 % is printed, the rows make 100.0 %")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "Name,Total,Count\n",
        "name,time\na,1\n",
        "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n1,2,3,4,cudaFree\n",
        "Time (%),Total Time (ns),Count,Avg (ns),Operation\n1,2,3,4,[CUDA memset]\n",
        '{"traceEvents": [{"name": "Name\\tTotal Time\\tInstances"}]}',
        "SQLite format 3\0Name\tTotal Time\tInstances\n",
        "Name  Self CPU %  CUDA total  # of Calls\n",
    ],
)
def test_what_holds_no_kernel_table_is_not_taken_for_one(text: str, read: Read) -> None:
    is_loose = text.startswith("Name,Total,Count")
    assert FORMAT.sniff(text.encode()) is is_loose
    if not is_loose and not text.startswith("SQLite"):
        with pytest.raises(FormatError, match=r"expected the header of a kernel table .* found none in"):
            read(text, format="nsys-table")


@pytest.mark.parametrize("value", ["-", "", "n/a"])
def test_what_is_absent_is_null(value: str, read: Read) -> None:
    cells: list[Any] = rows(
        read(f"Name\tTotal Time\tMin\tInstances\nk\t{value}\t{value}\t1\n"), "totals", "total_ns", "min_ns"
    )
    assert cells == [(None, None)]
