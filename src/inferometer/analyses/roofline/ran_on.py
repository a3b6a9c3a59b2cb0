"""Which device of our data a trace ran on."""

import polars as pl

from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.hardware.traced_names import describe_devices, infer_traced
from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.hardware.device import Device
from inferometer.trace.facts import Facts
from inferometer.units import format_list


def find_device(found: Attribution, facts: Facts) -> tuple[Device | None, list[str]]:
    """The device that most of the launches ran on, None where it isn't known, and remarks on that."""
    counts = found.launches.filter(~pl.col("is_captured")).group_by(pl.col("device").cast(pl.String)).len()
    used = [name for name, _ in counts.sort("len", descending=True).iter_rows() if name is not None]
    described = describe_devices(facts, used)
    for text in used:
        traced = described.get(text)
        if traced is None:
            continue
        if known := device_of(traced):
            return known, []
        if alike := infer_traced(traced):
            if len(alike) == 1:
                return alike[0], [f"The file doesn't name its device: it looks like {alike[0].name} (inferred)."]
            names = format_list([device.name for device in alike])
            return None, [f"The device may be {names}: name it with --hardware for bounds."]
    named = [name for text in used if (traced := described.get(text)) and (name := traced.name)]
    if named:
        names = format_list(list(dict.fromkeys(named)))
        why = f"No peaks of {names} are known here, and without them there are no bounds"
        how = "inferometer hardware --measure, on that machine, writes them for --hardware-file"
        return None, [f"{why}: {how}."]
    return None, ["What the file ran on isn't known: name it with --hardware for bounds."]
