"""Runtime calls as a HIP profiler names them, and what it says of a launch: the kernel, even of one being captured.

Names, ids and arguments are those of public ROCm captures: `cid` as roctracer numbers its HIP calls. Kernels and the
machine stay those of the other modes, so that a capture and a replay of its graph can be paired.
"""

from __future__ import annotations

import json
from typing import Final

from .nodes import Launch
from .runs import CallRun, WorkRun

HIP_CALLS: Final = {
    "cudaFuncSetAttribute": "hipGetDevicePropertiesR0600",
    "cudaLaunchKernel": "hipLaunchKernel",
    "cudaLaunchKernelExC": "hipLaunchKernel",
    "cudaMemcpyAsync": "hipMemcpyAsync",
    "cudaStreamIsCapturing": "hipStreamGetCaptureInfo",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuLaunchKernelEx": "hipExtModuleLaunchKernel",
}
_CIDS: Final = {
    "hipDeviceSynchronize": 48,
    "hipDriverGetVersion": 341,
    "hipExtModuleLaunchKernel": 65,
    "hipGetDevicePropertiesR0600": 370,
    "hipGraphDestroy": 212,
    "hipGraphGetNodes": 239,
    "hipGraphInstantiateWithFlags": 279,
    "hipLaunchKernel": 107,
    "hipMemcpyAsync": 134,
    "hipModuleLaunchKernel": 169,
    "hipStreamBeginCapture": 219,
    "hipStreamEndCapture": 220,
    "hipStreamGetCaptureInfo": 288,
}
_STREAM_HANDLE: Final = 0x7ED2_E000_0000  # of stream 0; the others follow


def call_args(run: CallRun) -> str:
    """All arguments of a call but the external id."""
    called = f'"cid": {_CIDS[run.api]}, "correlation": {run.correlation}'
    launch = run.launch
    if launch is None:
        return called
    handle = _STREAM_HANDLE + 0x1000 * launch.stream
    return (
        f'"kernel": {json.dumps(launch.kernel)}, {called},      "stream": "{handle:#x}",      '
        f'"grid": {list(launch.grid)},      "block": {list(launch.block)},      "shared memory": {launch.shared_bytes}'
    )


def kernel_args(run: WorkRun, launch: Launch, device: int) -> str:
    """All arguments of a kernel but the external id."""
    return (
        f'"device": {device}, "stream": {run.stream},      "correlation": {run.correlation}, '
        f'"kind": "Dispatch Kernel",      "grid": {list(launch.grid)},      "block": {list(launch.block)}'
    )
