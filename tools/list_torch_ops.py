"""Lists what the ops of the installed PyTorch do, as its dispatcher knows: `formats/kineto/torch_ops.json`.

python tools/list_torch_ops.py > src/inferometer/formats/kineto/torch_ops.json
"""

import json

import torch

from inferometer.record.profiler.op_kinds import OpKinds

_NAMESPACE = "aten::"


def main() -> None:
    """Writes the list to standard output."""
    kind_of = OpKinds()
    names = sorted({each.name for each in torch._C._jit_get_all_schemas() if each.name.startswith(_NAMESPACE)})
    listed = {"source": f"PyTorch {torch.__version__.partition('+')[0]}: its dispatcher's registrations and schemas"}
    for kind, key in (("composed", "composed"), ("view", "views")):
        listed[key] = [name.removeprefix(_NAMESPACE) for name in names if kind_of(name) == kind]
    print(json.dumps(listed, indent=1))


if __name__ == "__main__":
    main()
