"""Ops of the CPU as launches, and what becomes of them where a GPU has launches, too.

A recording can't know while it runs whether the program will use the GPU of its machine: ops that compute on the CPU
are written as launches of the device `cpu`, since in a program without a GPU they are the work. Where a GPU has any,
the CPU is a host, whose idle time says nothing: then they are read as ops only.
"""

import polars as pl
from msgspec.structs import replace

from inferometer.trace.facts import Facts

CPU = "cpu"
NOTE_OF_CPU_LAUNCHES = "Ops that compute on the CPU count as launches of the device `cpu`: "
"""How the note begins that a recording has where it wrote some."""

_DROPPED = "Ops that compute on the CPU are in no table of launches: a GPU did the work."


def drop_beside_gpu(facts: Facts, launches: pl.LazyFrame) -> tuple[Facts, pl.LazyFrame]:
    """Both without launches of the CPU, where a recording has some of another device; else as they are."""
    of_gpu = pl.col("device").ne_missing(CPU)
    were_dropped = any(_DROPPED in note for note in facts.notes)
    if not were_dropped:
        if not any(NOTE_OF_CPU_LAUNCHES in note for note in facts.notes):
            return facts, launches
        if not launches.filter(of_gpu).head(1).collect().height:
            return facts, launches
    notes = [note.partition(NOTE_OF_CPU_LAUNCHES) for note in facts.notes]
    kept_notes = tuple(before + _DROPPED if found else before for before, found, _ in notes)
    devices = tuple(device for device in facts.devices if device.device != CPU)
    return replace(facts, notes=kept_notes, devices=devices), launches.filter(of_gpu)
