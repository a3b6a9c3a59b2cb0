"""The backend `compile`: the kernels of the backend `torch`, compiled by torch.compile."""

from inferometer.backends.backend import Backend
from inferometer.backends.compile.compiler import GPU_MODE, IN_PARTS, LEFT_OUT, compiler_unavailable, load_compiled
from inferometer.backends.compile.decoder import DECODER
from inferometer.backends.torch.catalogue import KERNELS

BACKEND = Backend(
    name="compile",
    summary="Plain PyTorch, compiled by torch.compile for each shape.",
    operators=tuple(name for name in KERNELS if name not in LEFT_OUT),
    unavailable=compiler_unavailable,
    load=load_compiled,
    decoder=DECODER,
    packages=("torch", "triton"),
    settings={
        "mode": f"{GPU_MODE} on a GPU, default on a CPU",
        "dynamic": "False",
        "fullgraph": f"True, but for {', '.join(sorted(IN_PARTS))}",
    },
)
