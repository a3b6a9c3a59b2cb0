"""Text around tables: every line kept, with what it was taken for, its source file and the kernels it names."""

import json
from collections.abc import Callable

from tests.traces import rows

from inferometer import Trace

Read = Callable[..., Trace]
TEXT = """\
# Profile of today
Name\tTotal Time\tInstances
void ns::gemm_k<int>(int)\t1 us\t1
norm_k\t2 us\t1

Taken at noon.
PATH: src/gemm.cu
gemm_k 总是先运行
then norm_k, which gemm_k waits for

still of that file


no longer
see models/llama.py:30 for norm_k
"""


def test_each_line_has_a_kind_a_source_and_the_kernels_that_it_names(read: Read) -> None:
    found = [
        (line, kind, source, json.loads(fields or "{}").get("kernels", []))
        for line, kind, source, fields in rows(read(TEXT), "log", "line", "kind", "source", "fields")
    ]
    gemm, norm = "void ns::gemm_k<int>(int)", "norm_k"
    assert found == [
        (1, "heading", None, []),
        (2, "heading", None, []),
        (6, "remark", None, []),
        (7, "path", "src/gemm.cu", []),
        (8, "remark", "src/gemm.cu", [gemm]),
        (9, "remark", "src/gemm.cu", [norm, gemm]),
        (11, "remark", "src/gemm.cu", []),
        (14, "remark", None, []),
        (15, "remark", "models/llama.py", [norm]),
    ]


def test_headings_say_which_section_they_begin(read: Read) -> None:
    text = TEXT + "\nName\tTotal Time\tInstances\nk\t1 us\t1\n"
    fields = [
        json.loads(each) for kind, each in rows(read(text), "log", "kind", "fields") if kind == "heading" and each
    ]
    assert fields == [{"section": 0}, {"section": 1}]
