"""Work of calls of which only some launches are in the file."""

import json

import pytest

from inferometer.analyses.roofline.work import bounded, recorded_call

MEMSET, SPLIT = "Memset (Device)", "void splitKreduce_kernel<float, float>(float*)"


def reason(op: str, dims: list[list[int]], kernels: list[str]) -> str:
    types = json.dumps(["float"] * len(dims))
    row = {"op": op, "input_dims": json.dumps(dims), "input_dtypes": types, "input_strides": None, "scalars": None}
    return bounded(recorded_call(row, kernels), None).reason


@pytest.mark.parametrize("kernels", [[MEMSET], [SPLIT], [MEMSET, SPLIT], ["__amd_rocclr_fillBufferAligned"]])
def test_a_product_needs_a_launch_that_multiplies(kernels: list[str]) -> None:
    assert "aren't in the file" in reason("aten::mm", [[8, 4], [4, 2]], kernels)
    assert not reason("aten::mm", [[8, 4], [4, 2]], [*kernels, "ampere_sgemm_128x64_nn"])


def test_what_reads_needs_a_launch_that_reads_and_a_fill_does_not() -> None:
    assert "aren't in the file" in reason("aten::exp", [[8, 4]], [MEMSET])
    assert not reason("aten::zero_", [[8, 4]], [MEMSET])
    assert not reason("aten::exp", [[8, 4]], [])
