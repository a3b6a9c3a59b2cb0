"""Names of calls: one name for one function, and what it does."""

import pytest

from inferometer.names.apis import ApiKind, api_kind, canonical_api, is_blocking_copy, is_of_cuda_or_hip


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("cudaLaunchKernel", "cudaLaunchKernel"),
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties"),
        ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
        ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
        ("cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoH"),
        ("cuLaunchKernel_ptsz", "cuLaunchKernel"),
        ("hipLaunchKernel_spt", "hipLaunchKernel"),
        ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties"),
        ("cudaMemcpy2D_v3020", "cudaMemcpy2D"),
        ("cudaFuncGetAttributes", "cudaFuncGetAttributes"),
        ("my_function_v2", "my_function_v2"),
        ("customCall_v2", "customCall_v2"),
        ("cuda_v2", "cuda_v2"),
        ("clEnqueueNDRangeKernel", "clEnqueueNDRangeKernel"),
        ("cudaπ_v1", "cudaπ_v1"),
        ("", ""),
    ],
)
def test_a_function_has_one_name(written: str, name: str) -> None:
    assert canonical_api(written) == name
    assert canonical_api(name) == name


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("launch", "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cudaLaunch cuLaunchKernel"),
        ("launch", "cuLaunchKernelEx cuLaunchGridAsync cudaLaunchKernel_v7000 hipLaunchKernel hipModuleLaunchKernel"),
        ("launch", "hipExtModuleLaunchKernel hipExtLaunchKernel hipHccModuleLaunchKernel hipLaunchByPtr"),
        ("graph", "cudaGraphLaunch cudaGraphLaunch_v10000 cuGraphLaunch hipGraphLaunch"),
        ("copy", "cudaMemcpy cudaMemcpyAsync cudaMemcpy2DAsync cuMemcpyHtoDAsync_v2 hipMemcpyWithStream"),
        ("copy", "hipDrvMemcpy3D"),
        ("wait", "cudaDeviceSynchronize cudaStreamSynchronize_v3020 cudaEventSynchronize cudaThreadSynchronize"),
        ("wait", "cuCtxSynchronize cuStreamSynchronize cuEventSynchronize hipDeviceSynchronize hipStreamSynchronize"),
        ("allocation", "cudaMalloc cudaFree cudaMallocManaged cudaHostAlloc cudaMallocHost cuMemAlloc_v2"),
        ("allocation", "cuMemFree_v2 cuMemHostAlloc cuMemAllocHost_v2 hipMalloc hipFree hipHostMalloc hipHostFree"),
        ("allocation", "hipExtMallocWithFlags"),
        ("other", "cudaMallocAsync cudaFreeAsync cuMemAllocAsync cudaLaunchHostFunc cuLaunchHostFunc"),
        ("other", "hipLaunchHostFunc cudaStreamWaitEvent cudaEventQuery cudaStreamQuery cudaGetDevice"),
        ("other", "cudaMemsetAsync cudaEventRecord clFinish cuda custom Memcpy synchronize"),
    ],
)
def test_a_name_tells_what_a_call_does(kind: ApiKind, names: str) -> None:
    assert {name: api_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_copies_block_unless_their_name_says_that_they_do_not() -> None:
    assert is_blocking_copy("cudaMemcpy_v3020")
    assert is_blocking_copy("hipMemcpyWithStream")
    assert not is_blocking_copy("cudaMemcpyAsync")
    assert not is_blocking_copy("cudaMemset")


@pytest.mark.parametrize(
    ("name", "known"),
    [("hipStreamWaitEvent", True), ("cudaGraphLaunch_v10000", True), ("cuLaunchKernelEx", True), ("submit", False),
     ("custom", False), ("cudatest", False), ("vkQueueSubmit", False)],
)  # fmt: skip
def test_a_function_of_cuda_or_hip_is_known_by_its_prefix(name: str, known: bool) -> None:
    assert is_of_cuda_or_hip(name) is known
