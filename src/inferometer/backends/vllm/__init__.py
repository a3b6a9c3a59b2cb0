"""The backend `vllm`: kernels that vLLM ships."""

from inferometer.backends.backend import Backend
from inferometer.backends.vllm.kernels import LOADERS, load_kernel, vllm_unavailable

BACKEND = Backend(
    name="vllm",
    summary="Kernels that vLLM ships, called as its layers call them.",
    operators=tuple(sorted(LOADERS)),
    unavailable=vllm_unavailable,
    load=load_kernel,
    packages=("torch", "triton", "vllm"),
)
