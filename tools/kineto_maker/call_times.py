"""How long the runtime's calls usually take on the host, in ns: typical of public captures."""

from __future__ import annotations

from typing import Final

_LAUNCH_NS: Final = 3_100
_CALL_NS: Final = {
    "cudaGraphLaunch": 21_000,
    "cudaMemcpyAsync": 5_200,
    "cudaMemsetAsync": 2_900,
    "cudaEventRecord": 900,
    "cudaStreamWaitEvent": 700,
    "cudaFuncSetAttribute": 240,
    "cudaStreamIsCapturing": 210,
    "hipDriverGetVersion": 150,
    "hipGraphDestroy": 153_000,
    "hipGraphGetNodes": 60_000,
    "hipGraphInstantiateWithFlags": 1_560_000,
    "hipStreamBeginCapture": 3_100,
    "hipStreamEndCapture": 5_300,
}


def usual_ns(api: str) -> int:
    """The usual time of a call that doesn't wait; of one that isn't listed, that of a launch."""
    return _CALL_NS.get(api, _LAUNCH_NS)
