"""What an op does, as the dispatcher of the PyTorch that runs knows it: custom ops and those of any version, too."""

from typing import Any

from inferometer.formats.kineto.cpu_launches import Kind

_ALLOCATES = ("aten::empty", "aten::new_empty", "aten::resize_", "aten::set_")


class OpKinds:
    """What an op of a name does, as PyTorch's dispatcher knows it; an op that it doesn't know computes."""

    def __init__(self) -> None:
        self._known: dict[str, Kind] = {}

    def __call__(self, name: str) -> Kind:
        """Of one name, with its namespace; an overload's name after a dot may be there."""
        if name not in self._known:
            self._known[name] = _kind(name.partition(".")[0])
        return self._known[name]


def _kind(name: str) -> Kind:
    if name.startswith(_ALLOCATES):
        return "view"
    try:
        import torch

        dispatcher: Any = torch._C
        _, overloads = dispatcher._jit_get_operation(name)
        for overload in overloads or ():
            full = f"{name}.{overload}" if overload else name
            if not dispatcher._dispatch_has_kernel(full):
                continue
            if dispatcher._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
                return "composed"
            returned = [each.alias_info for each in dispatcher._get_schema(name, overload).returns]
            return (
                "view" if returned and all(each is not None and not each.is_write for each in returned) else "compute"
            )
    except (ImportError, AttributeError, RuntimeError):  # another version of torch, or no such op
        pass
    return "compute"
