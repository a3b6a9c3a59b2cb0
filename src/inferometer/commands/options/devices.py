"""Where commands that run kernels run them: the device that a user names."""


def require_device_at(device: str) -> str:
    """The device as torch calls it in full: `cpu`, `cuda:0`.

    Raises:
        Unavailable: There is no such device, or no torch.
        InputError: It is no device.
    """
    from importlib.util import find_spec

    from inferometer.errors import InputError, Unavailable

    if find_spec("torch") is None:
        raise Unavailable("torch is not installed", hint="pip install 'inferometer[torch]'")
    import torch

    try:
        kind = torch.device(device)
    except RuntimeError as error:
        raise InputError(f'{device}: expected cpu, cuda or cuda:1 to run on, found "{device}"') from error
    if kind.type not in ("cpu", "cuda"):
        raise InputError(f'{device}: expected cpu, cuda or cuda:1 to run on, found "{device}"')
    if kind.type == "cpu":
        return "cpu"
    if torch.cuda.device_count() <= (kind.index or 0):
        raise Unavailable(f"there is no GPU {device} here", hint="--on cpu runs on the CPU.")
    return f"cuda:{kind.index or 0}"
