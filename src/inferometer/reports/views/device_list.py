"""Devices side by side, in scaled units that the columns name."""

from collections.abc import Sequence

from inferometer.analyses.hardware.devices import DeviceList
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

VALUES = (
    Field("memory_gib", "Memory (GiB)", "number"),
    Field("bandwidth_gb_per_s", "Bandwidth (GB/s)", "number"),
    Field("bf16_tflop_per_s", "BF16 (TFLOP/s)", "number"),
    Field("fp8_tflop_per_s", "FP8 (TFLOP/s)", "number", spare=1),
    Field("fp32_tflop_per_s", "FP32 (TFLOP/s)", "number", spare=2),
    Field("link_gb_per_s", "Link (GB/s)", "number", spare=3),
    Field("pcie_gb_per_s", "PCIe (GB/s)", "number", spare=4),
)
NOTES = (
    "Peaks are dense: BF16 and FP8 of the matrix units, FP32 of the vector units. Links and PCIe are per direction.",
    "A dash is unknown, or not there. All values of a device, with their sources: inferometer hardware NAME",
)


def _sections(listed: DeviceList) -> Sequence[Section]:
    return (Section("Devices", (Field("device", "Device", "text"), *VALUES), listed.frame, NOTES),)


VIEW = View(schema=Schema("hardware", 1), sections=_sections)
