"""The backend `triton`: our own Triton kernels."""

from inferometer.backends.backend import Backend
from inferometer.backends.triton.decoder import DECODER
from inferometer.backends.triton.loading import OPERATORS, SWITCH, kernel_to_build, load_kernel, triton_unavailable

BACKEND = Backend(
    name="triton",
    summary="Our own Triton kernels: tiles by rule, not tuned; interpreted on a CPU, where they only show that "
    "they are right.",
    operators=OPERATORS,
    unavailable=triton_unavailable,
    load=load_kernel,
    decoder=DECODER,
    packages=("torch", "triton"),
    settings={"on a CPU": f"interpreted, {SWITCH}=1"},
    interpreted=True,
    build=kernel_to_build,
)
