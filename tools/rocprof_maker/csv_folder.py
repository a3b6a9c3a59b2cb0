"""The program as the CSV files of rocprofv3: `HOST/PID_kernel_trace.csv` and its fellows, of ROCm 7 or 6.3."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .json_file import agents
from .program import HOST, NO_SYMBOL, Call, Options, Run

Rows = Iterable[dict[str, Any]]


def write_csv(runs: Sequence[Run], options: Options, folder: Path, *, release: str = "7.0") -> None:
    """Write the folder; a kernel without a symbol has its number for a name, as there is no other."""
    old = release.startswith("6")
    (folder / HOST).mkdir(parents=True)
    for run in runs:
        files: dict[str, Rows] = {
            "agent_info": _agents(options.gpus),
            "kernel_trace": _kernels(run, old=old),
            "memory_copy_trace": _copies(run, old=old),
            "hip_api_trace": _calls(run.pid, run.hip, "HIP_RUNTIME_API"),
            "hsa_api_trace": _calls(run.pid, run.hsa, "HSA_CORE_API"),
            "marker_api_trace": _calls(run.pid, run.ranges, "MARKER_CORE_API"),
            "rccl_api_trace": _calls(run.pid, run.rccl, "RCCL_API"),
            "counter_collection": _counters(run),
        }
        for kind, rows in files.items():
            _write(folder / HOST / f"{run.pid}_{kind}.csv", list(rows))


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """A file exists only if it has rows."""
    if rows:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC)
            writer.writeheader()
            writer.writerows(rows)


def _agent(number: int, *, old: bool) -> int | str:
    return number if old else f"Agent {number}"


def _agents(gpus: int) -> Rows:
    for agent in agents(gpus):
        yield {
            "Node_Id": agent["node_id"],
            "Logical_Node_Id": agent["logical_node_id"],
            "Agent_Type": "GPU" if agent["type"] == 2 else "CPU",
            "Cu_Count": agent.get("cu_count", 0),
            "Wave_Front_Size": agent.get("wave_front_size", 0),
            "Gfx_Target_Version": agent["gfx_target_version"],
            "Logical_Node_Type_Id": agent["logical_node_type_id"],
            "Name": agent["name"],
            "Product_Name": agent["product_name"],
        }


def _kernels(run: Run, *, old: bool) -> Rows:
    for row in run.dispatches:
        kernel = row.kernel
        yield {
            "Kind": "KERNEL_DISPATCH",
            "Agent_Id": _agent(row.gpu + 1, old=old),
            "Queue_Id": row.queue,
            **({} if old else {"Stream_Id": row.stream}),
            "Thread_Id": row.thread,
            "Dispatch_Id": row.dispatch,
            "Kernel_Id": kernel.number,
            "Kernel_Name": f"[kernel {NO_SYMBOL}]" if kernel.number == NO_SYMBOL else kernel.name,
            "Correlation_Id": row.correlation,
            "Start_Timestamp": row.start,
            "End_Timestamp": row.end,
            **_code(kernel, old=old),
            **{f"Workgroup_Size_{axis}": size for axis, size in zip("XYZ", kernel.workgroup, strict=True)},
            **{f"Grid_Size_{axis}": size for axis, size in zip("XYZ", kernel.grid, strict=True)},
        }


def _code(kernel: Any, *, old: bool) -> dict[str, int]:
    if old:
        lds = kernel.static_lds + kernel.dynamic_lds
        return {"Private_Segment_Size": kernel.scratch, "Group_Segment_Size": lds}
    code = {"LDS_Block_Size": kernel.static_lds, "Scratch_Size": kernel.scratch, "VGPR_Count": kernel.vgpr}
    return code | {"Accum_VGPR_Count": kernel.agpr, "SGPR_Count": kernel.sgpr}


def _copies(run: Run, *, old: bool) -> Rows:
    for row in run.copies:
        ends = (0, row.gpu + 1) if row.way == "HOST_TO_DEVICE" else (row.gpu + 1, 0)
        yield {
            "Kind": "MEMORY_COPY",
            "Direction": row.way if old else f"MEMORY_COPY_{row.way}",
            "Source_Agent_Id": _agent(ends[0], old=old),
            "Destination_Agent_Id": _agent(ends[1], old=old),
            "Correlation_Id": row.correlation,
            "Start_Timestamp": row.start,
            "End_Timestamp": row.end,
        }


def _calls(pid: int, calls: Sequence[Call], domain: str) -> Rows:
    for call in calls:
        yield {
            "Domain": domain,
            "Function": call.name,
            "Process_Id": pid,
            "Thread_Id": call.thread,
            "Correlation_Id": call.correlation,
            "Start_Timestamp": call.start,
            "End_Timestamp": call.end,
        }


def _counters(run: Run) -> Rows:
    for row in run.dispatches:
        (gx, gy, gz), (bx, by, bz) = row.kernel.grid, row.kernel.workgroup
        for name, counts in run.counts.get(row.dispatch, {}).items():
            yield {
                "Correlation_Id": row.correlation,
                "Dispatch_Id": row.dispatch,
                "Agent_Id": f"GPU {row.gpu}",
                "Queue_Id": row.queue,
                "Process_Id": run.pid,
                "Thread_Id": row.thread,
                "Grid_Size": gx * gy * gz,
                "Kernel_Id": row.kernel.number,
                "Kernel_Name": row.kernel.name,
                "Workgroup_Size": bx * by * bz,
                "Counter_Name": name,
                "Counter_Value": f"{sum(counts):.6f}",
            }
