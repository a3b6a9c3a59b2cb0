"""Which physical device, process and machine a row belongs to."""

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.nsys.ids import process_of

ACTIVITIES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")


class Tracks:
    """Processes number the devices that they see from 0; the export says which physical device each number is."""

    def __init__(self, export: Export) -> None:
        self.host = _host_name(export)
        self._only_process = _only_process(export)
        rows = read_all(export, "TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"])
        self._physical = rows.drop_nulls().unique(["cudaId", "pid"], keep="first", maintain_order=True)

    def place(self, rows: pl.DataFrame) -> pl.DataFrame:
        """`rows` with `process` and `device` from `globalPid` and `deviceId`, as far as these are there."""
        if "globalPid" in rows.columns:
            rows = rows.with_columns(process_of(pl.col("globalPid")).alias("process"))
        else:
            rows = rows.with_columns(pl.lit(self._only_process, dtype=pl.Int64).alias("process"))
        if "deviceId" not in rows.columns:
            return rows
        number = pl.col("deviceId")
        if self._physical.height:
            seen, physical = ["process", "deviceId"], ["pid", "cudaId"]
            rows = rows.join(self._physical, left_on=seen, right_on=physical, how="left", maintain_order="left")
            number = pl.coalesce("gpuId", "deviceId")
        return rows.with_columns(pl.concat_str(pl.lit("gpu:"), number).cast(pl.Categorical).alias("device"))


def _host_name(export: Export) -> str | None:
    rows = read_all(export, "TARGET_INFO_SYSTEM_ENV", [], ["name", "value"])
    names = rows.filter(pl.col("name") == "Hostname")["value"].drop_nulls().unique()
    return str(names[0]) if len(names) == 1 else None


def _only_process(export: Export) -> int | None:
    """The process that made all calls; device work of old exports doesn't say whose it is."""
    if all("globalPid" in export.columns(table) for table in ACTIVITIES if export.columns(table)):
        return None
    if "globalTid" not in export.columns("CUPTI_ACTIVITY_KIND_RUNTIME"):
        return None
    processes: set[int] = set()
    for batch in export.batches("CUPTI_ACTIVITY_KIND_RUNTIME", ["globalTid"]):
        processes.update(batch.select(process_of(pl.col("globalTid")).unique()).to_series().drop_nulls())
    return processes.pop() if len(processes) == 1 else None
