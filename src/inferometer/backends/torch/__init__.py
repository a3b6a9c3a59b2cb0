"""The backend `torch`: plain PyTorch, run eagerly."""

from inferometer.backends.backend import Backend
from inferometer.backends.torch.catalogue import KERNELS, load_kernel, torch_unavailable
from inferometer.backends.torch.decoder import DECODER

BACKEND = Backend(
    name="torch",
    summary="Plain PyTorch, run eagerly: its fastest operations for each, no kernels of its own.",
    operators=KERNELS,
    unavailable=torch_unavailable,
    load=load_kernel,
    decoder=DECODER,
)
