"""What traces are grouped by, in sentences and headings."""


def name_of(field: str) -> str:
    """`gpu` -> `GPU`, `model` -> `model`."""
    return "GPU" if field == "gpu" else field


def title_of(field: str) -> str:
    """`gpu` -> `GPU`, `model` -> `Model`."""
    name = name_of(field)
    return name[0].upper() + name[1:]
