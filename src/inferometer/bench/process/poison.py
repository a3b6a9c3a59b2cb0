"""New memory full of NaN, so that what a kernel leaves unwritten can't be right by chance."""

from typing import Any


def poison(torch: Any) -> None:
    """Fill what torch hands out uninitialised: with NaN, with the largest integer, with True."""

    def filled(make: Any) -> Any:
        def poisoned(*args: Any, **kwargs: Any) -> Any:
            found = make(*args, **kwargs)
            if found.dtype.is_floating_point:
                return found.fill_(float("nan")) if found.element_size() > 1 else _fill_bytes(torch, found)
            return found.fill_(True if found.dtype == torch.bool else torch.iinfo(found.dtype).max)

        return poisoned

    for name in ("empty", "empty_like", "empty_strided", "empty_permuted"):
        setattr(torch, name, filled(getattr(torch, name)))
    for name in ("new_empty", "new_empty_strided"):
        setattr(torch.Tensor, name, filled(getattr(torch.Tensor, name)))


def _fill_bytes(torch: Any, found: Any) -> Any:
    """fp8 types lack `fill_` on some devices; 0x80 is NaN in fnuz, 0x7f in the others."""
    found.view(torch.uint8).fill_(0x80 if "fnuz" in str(found.dtype) else 0x7F)
    return found
