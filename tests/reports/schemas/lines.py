"""Command lines that print each document, and the fields that none of them fills, each with the reason."""

from typing import Final

_EXPORTED: Final = "--export flashinfer-bench --export-to {new}"
_CUTS_A_CALL: Final = "--between 0ms 0.102ms"  # of a scan's two kernels, the first

LINES: Final[dict[str, tuple[str, ...]]] = {
    "bench": (
        "bench rms_norm --backend torch --cases 1",
        f"bench rms_norm --candidate {{right}} --stage fast --seconds 0.01 -o {{new}}.json {_EXPORTED}",
    ),
    "builds": ("bench rms_norm --backend triton --stage builds --arch sm_90 --arch gfx942",),
    "calls": ("calls {decode}", "calls {recordings}/cpu_stop/fault.ifm", "calls {log}"),
    "chat": ("chat tiny-llama --prompt Hello --new-tokens 3",),
    "compare": (
        "compare {slow}/normal {slow}/abnormal",
        "compare {recordings}/cpu_stop/normal.ifm {recordings}/cpu_stop/fault.ifm",
        "compare {recordings}/disk/normal.ifm {recordings}/disk/fault.ifm",
        "compare {h200}/normal.ifm {h200}/gpu_contention.ifm",
        "compare {decode} {h200}/kineto_eager.json.gz",
    ),
    "compared_tests": (
        "compare {engines}/llama_bench_1.json {engines}/llama_bench_2.json",
        "compare {engines}/llama_bench_1.json {engines}/llama_bench.json",
        "compare {engines}/llama_bench_1.json {other_model}",
    ),
    "completion": ("completion bash",),
    "device": tuple(f"hardware '{name}'" for name in ("H100 SXM", "MI300X", "H20")),
    "each_launch": (
        "launches --each {decode}",
        "launches --each {h200}/kineto_graph.json.gz",
        "launches --each {ranks}",
    ),
    "export": ("export {decode} --to parquet -o {new} --redact", "export {log} --to chrome -o {new}.json"),
    "findings": ("findings {decode}", "findings {log}", "findings {recordings}/cpu_stop/fault.ifm", "findings {ranks}"),
    "fleet": ("fleet {fleet} -o {new}.html", "fleet {fleet} --by model"),
    "fleet_changes": ("fleet {fleet} changes",),
    "fleet_importance": ("fleet {fleet} importance --cluster version",),
    "fleet_models": ("fleet {fleet} models",),
    "fleet_outliers": ("fleet {fleet} outliers",),
    "fleet_savings": ("fleet {fleet} savings --cluster version",),
    "fleet_times": tuple(
        f"fleet {{fleet}} {what} --by gpu" for what in ("kernels", "families", "operators", "shapes", "classes")
    ),
    "counters": (
        *("counters {h200}/ncu_raw.csv.gz --match gemm", "counters {h200}/ncu_details.csv.gz --top 2"),
        "counters {amd}",
    ),
    "formats": ("formats",),
    "memory": (
        *("memory {snapshot}", "memory {snapshot} --by stack --top 2"),
        "memory {samples}/cpu/profile.json.gz",
    ),
    "op_work": (
        "ops {samples}/cpu/et.json.gz --hardware 'H200 SXM' --top 200",
        "ops {samples}/cpu/profile.json.gz --execution-trace {samples}/cpu/et.json.gz",
    ),
    "rules": ("rules",),
    "given_shapes": ("operators --shapes {shapes}", "operators --shapes {shapes} --hardware 'MI300X'"),
    "groups": (
        "groups {decode}",
        "groups {h200}/kineto_graph.json.gz --learn-from {h200}/kineto_eager.json.gz",
        "groups {table} --split",
        "groups {log}",
    ),
    "hardware": ("hardware",),
    "import": ("import {decode} -o {new}.ifm",),
    "kernel_bounds": ("kernels --roofline {decode} --match gemm", "kernels --roofline {h200}/kineto_eager.json.gz"),
    "kernels": (
        *(f"kernels {{decode}} --by {by}" for by in ("name", "short", "family", "library", "dtype", "tile")),
        *(f"kernels {{log}} --by {by}" for by in ("layer", "role")),
        "kernels --memory {h200}/kineto_eager.json.gz",
        "kernels {counted} --counters {counters}",
        "kernels {table}",
        "kernels {decode} --match gemm",
    ),
    "launches": ("launches {decode}", "launches --by span {h200}/kineto_graph.json.gz"),
    "leaderboard": ("leaderboard --hardware 'H100 SXM' -o {new}.html",),
    "measured_device": ("hardware --measure --quick --on cpu -o {new}.json",),
    "mine": ("mine {table} {right} -o {new}.ifm --workers 1",),
    "model_bounds": (
        "kernels {log} --model-config Qwen2.5-0.5B --bandwidth 150",
        "kernels {log} --model-config Qwen2.5-0.5B --hardware 'H100 SXM' --by layer",
    ),
    "names": (
        "names decode nvjet_tst_128x112_64x7_1x2_h_bz_coopB_splitK_TNT matmul:ffn_up:L0",
        "names decode ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
    ),
    "operator": ("operators rms_norm --hardware MI300X",),
    "operators": ("operators", "operators --hardware 'H100 SXM'"),
    "op_arguments": (
        "kernels --by op-args {decode}",
        "kernels --by op-args {h200}/kineto_eager.json.gz",
        f"kernels --by op-args {{decode}} {_CUTS_A_CALL}",
    ),
    "published": ("compare --published {slow}/normal {slow}/abnormal",),
    "query": ("sql {decode} 'select kernel, grid, dur_ns from launches limit 3'",),
    "record": ("record -o {new}.ifm -- {python} -c pass",),
    "replay": ("replay {h200}/kineto_eager.json.gz --op 1", "replay {decode} --op 3 -o {new}.py"),
    "report": ("report {decode} -o {new}.html", "report {decode} -o {new}.md"),
    "roofline": (
        "roofline {decode}",
        "roofline {h200}/kineto_eager.json.gz --counters {h200}/ncu_details.csv.gz",
        "roofline {counted} --counters {counters}",
        "roofline {ranks} --hardware 'H100 SXM'",
        "roofline {samples}/cpu/profile.json.gz --execution-trace {samples}/cpu/et.json.gz --hardware 'H200 SXM'",
        "roofline {h200}/normal.ifm",
        f"roofline {{decode}} {_CUTS_A_CALL}",
    ),
    "spans": ("spans {decode}", "spans {h200}/kineto_graph.json.gz"),
    "steps": (
        "steps {log}",
        "steps {recordings}/cpu_stop/fault.ifm",
        "steps {h200}/gpu_contention.ifm",
        "steps {decode}",
        "steps {log} --serving {serving}",
    ),
    "summary": (
        *(f"summary {{{source}}}" for source in ("decode", "log", "ranks", "table")),
        *("summary {h200}/normal.ifm", "summary {engines}/llama_bench.json"),
    ),
    "timeline": ("timeline {decode}", "timeline {ranks}", "timeline {h200}/gpu_contention.ifm"),
    "traced_devices": ("hardware --of {decode}", "hardware --of {log}"),
    "tree": ("tree {decode}", "tree {log}"),
    "tree_comparison": ("tree {h200}/pcie_traffic.ifm --base {h200}/normal.ifm", "tree {decode} --base {decode}"),
    "watch": (
        "watch {recordings}/none/normal.ifm",
        "watch {h200}/normal.ifm --min-slowdown 1 --no-why",
        "watch {log}",
        "watch {recordings}/../on_and_off/run.ifm",
    ),
    "webgpu_chat": (
        "chat tiny-llama --engine webgpu --on numpy --prompt Hello --new-tokens 3 --profile",
        "chat tiny-llama --engine webgpu --on numpy --prompt Hello --new-tokens 3 --overhead",
    ),
}
"""By document: command lines without `--json`."""

OF_A_TRACE: Final = (
    *("summary", "kernels", "kernels --memory", "kernels --roofline", "kernels --by op-args", "calls", "launches"),
    *("launches --by module --layers pooled", "launches --each --top 50", "tree", "spans", "groups", "timeline"),
    *("findings", "roofline", "steps", "hardware --of"),
)
"""Commands that take any trace."""

_OF_COLLECTIVES = (
    *(f"timeline.Message.{name}" for name in ("rank", "device", "collective", "dtype", "message_bytes", "group")),
    *(f"timeline.Message.{name}" for name in ("group_size", "kernel", "count", "dur_ns", "bytes_per_s")),
    *("timeline.Collective.group", "timeline.Collective.not_compared"),
    *(f"roofline.CollectiveBound.{name}" for name in ("message_bytes", "group_size", "algorithm_bytes_per_s")),
    *(f"roofline.CollectiveBound.{name}" for name in ("bus_bytes_per_s", "fraction", "not_compared")),
)
_OF_PLANS = ("phase", "op", "role", "planned", "executed", "planned_count", "executed_count", "reason")

NEVER: Final[dict[str, tuple[str, ...]]] = {
    "the sources of the samples don't record what collectives exchange; real traces do": _OF_COLLECTIVES,
    "a GPU, or a bound of one, is needed": (
        *(f"results.Bound.{name}" for name in ("device", "bound_ns", "binding", "warm_ns", "launch_ns")),
        *("results.ShapeResult.bound", "results.ShapeResult.own_share", "results.Attribution.own"),
        *("results.ShapeResult.index", "chat.ChatParts.peak_device_bytes"),
        *(f"measured_device.Measurement.{name}" for name in ("clock_hz", "datasheet", "fraction")),
    ),
    "AMD's counters have no units": ("counters.KernelMetric.unit",),
    "no sample is of AMD's profiler, of several ranks' counters, or counts operations of matrix units": (
        *("counters.CountedLaunch.rank", "counters.CountedLaunch.tensor_flops", "facts.Device.target"),
        "joined_counters.CountedKernel.measured_tensor_flops",
    ),
    "slow steps of several processes, or such as get worse": (
        *("watch.SlowTime.owner", "watch.Worse.phases", "watch.Worse.since_ns"),
    ),
    "a candidate is wrong, or doesn't compile": (
        *(f"results.ShapeResult.{name}" for name in ("failure", "hard_case", "seed")),
        *(f"builds.FailedKernel.{name}" for name in ("kernel", "architecture", "configuration", "case", "tuned")),
        *("builds.FailedKernel.message", "builds.ArchitectureBuild.error"),
        *(f"builds.BuildFinding.{name}" for name in ("severity", "rule", "where", "found", "wanted")),
    ),
    "an answer fails, is recorded, is read in a browser, or doesn't run as planned": (
        *("chat.ChatParts.error", "chat.ChatParts.recording", "webgpu_overhead.OverheadParts.left_out"),
        *("webgpu_chat.WebGpuChat.fetched_bytes", "webgpu_chat.WebGpuChat.cached_bytes"),
        *(f"webgpu_chat.PlanDifference.{name}" for name in _OF_PLANS),
    ),
    "no device, shape or name of these has it": (
        *("operators.NamedBounds.memory_warm_ns", "roofline.ModelledOp.warm_bound_ns"),
        *("names.DecodedName.head_dim", "names.DecodedName.vector"),
    ),
    "no sample is of compiled code; real traces are": (
        *("each_launch.Launch.region", "each_launch.Launch.kernel_file", "each_launch.Launch.kernel_hash"),
        *("launches.SiteKernel.kernel_file", "roofline.ModelledOp.kernel_file"),
    ),
    "no sample has steps that are found in the order of kernels; real traces do": (
        *(f"steps.Step.{name}" for name in ("is_partial", "is_warm_up", "confidence", "layers")),
    ),
    "the counters lack it; no text among these names its speaker": (
        *("roofline.ModelledOp.measured_tensor_flops", "groups.AskedLine.source"),
    ),
    "no benchmark among the samples says it": (
        *(f"serving_latency.Serving.{name}" for name in ("accept_length", "concurrency", "label")),
        *("serving_latency.Serving.request_rate_per_s", "serving_latency.Latency.max_ns"),
    ),
    "no two samples differ in it; generated runs do": (
        *("compare.Comparable.repair", "compare.WorkChange.ratio", "compare.WorkChange.repeats"),
        *("compare.HostTime.frame", "compare.IdleFrame.frame", "compare.IdleFrame.caller", "compare.IdleFrame.own"),
        "compare.InputChange.dtypes",
    ),
    "of a folder of ranks that differ, a redacted copy, a file of another device's events": (
        *(f"memory.{name}.rank" for name in ("DeviceMemory", "Holder", "MemorySlice")),
        *("facts.Device.rank", "facts.RankFile.shift_ns", "facts.Facts.redacted", "facts.Facts.other_events"),
    ),
}
"""Fields that no line above fills, by the reason."""

SOMETIMES: Final = frozenset({"device.Device.l2_bandwidth"})
"""Fields that a measurement fills or not, by what else the machine does."""
