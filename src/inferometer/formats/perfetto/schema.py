"""The messages of a Perfetto trace, declared here: `perfetto` itself isn't needed.

Source: Perfetto 59, `trace_packet.proto` and what it refers to. Packets of other kinds than those that are read are
declared as bytes, so that each can be counted by its name.
"""

from typing import Any, Final

from inferometer.formats.protobuf_messages import Field, Schema

ABOUT: Final = (  # the recording and the machine, no events
    "trace_config",
    "trace_stats",
    "trace_uuid",
    "trace_provenance",
    "trace_attributes",
    "synchronization_marker",
    "system_info",
    "service_event",
    "extension_descriptor",
    "chrome_metadata",
    "cpu_info",
    "gpu_info",
    "interrupt_info",
    "trigger",
    "remote_clock_sync",
    "process_descriptor",
    "thread_descriptor",
    "track_event_range_of_interest",
)
_OTHERS: Final = {
    "ftrace_events": 1,
    "process_tree": 2,
    "inode_file_map": 4,
    "chrome_events": 5,
    "sys_stats": 7,
    "process_stats": 9,
    "trace_config": 33,
    "ftrace_stats": 34,
    "trace_stats": 35,
    "synchronization_marker": 36,
    "profile_packet": 37,
    "battery": 38,
    "android_log": 39,
    "power_rails": 40,
    "process_descriptor": 43,
    "thread_descriptor": 44,
    "system_info": 45,
    "trigger": 46,
    "packages_list": 47,
    "perfetto_metatrace": 49,
    "chrome_metadata": 51,
    "gpu_counter_event": 52,
    "gpu_render_stage_event": 53,
    "streaming_profile_packet": 54,
    "graphics_frame_event": 57,
    "module_symbols": 61,
    "vulkan_memory_event": 62,
    "gpu_log": 63,
    "deobfuscation_mapping": 64,
    "vulkan_api_event": 65,
    "perf_sample": 66,
    "cpu_info": 67,
    "smaps_packet": 68,
    "service_event": 69,
    "gpu_mem_total_event": 71,
    "extension_descriptor": 72,
    "memory_tracker_snapshot": 73,
    "streaming_allocation": 74,
    "streaming_free": 75,
    "trace_uuid": 89,
    "track_event_range_of_interest": 90,
    "etw_events": 95,
    "remote_clock_sync": 107,
    "trace_provenance": 124,
    "trace_attributes": 126,
    "gpu_info": 128,
    "generic_gpu_frequency_event": 129,
    "interrupt_info": 130,
    "stack_sample": 135,
}
_INTERNED: Final = (("iid", 1, "uint64"), ("name", 2, "bytes"))
_MESSAGES: Final[dict[str, tuple[Field, ...]]] = {
    "Trace": (("packet", 1, "*Packet"),),
    "Packet": (
        ("timestamp", 8, "uint64"),
        ("timestamp_clock_id", 58, "uint32"),
        ("sequence", 10, "uint32"),
        ("sequence_flags", 13, "uint32"),
        ("incremental_state_cleared", 41, "bool"),
        ("previous_packet_dropped", 42, "uint32"),
        ("first_packet_on_sequence", 87, "bool"),
        ("interned_data", 12, "InternedData"),
        ("defaults", 59, "Defaults"),
        ("clock_snapshot", 6, "?ClockSnapshot"),
        ("track_event", 11, "?TrackEvent"),
        ("track_descriptor", 60, "?TrackDescriptor"),
        ("compressed_packets", 50, "?bytes"),
        ("zstd_compressed_packets", 133, "?bytes"),
        *((name, number, "?bytes") for name, number in _OTHERS.items()),
    ),
    "InternedData": (
        ("categories", 1, "*Interned"),
        ("names", 2, "*Interned"),
        ("annotation_names", 3, "*Interned"),
        ("texts", 29, "*Interned"),
    ),
    "Interned": _INTERNED,
    "Defaults": (("timestamp_clock_id", 58, "uint32"), ("track_event", 11, "EventDefaults")),
    "EventDefaults": (("track_uuid", 11, "uint64"),),
    "ClockSnapshot": (("clocks", 1, "*Clock"), ("primary_trace_clock", 2, "int32")),
    "Clock": (
        ("clock_id", 1, "uint32"),
        ("timestamp", 2, "uint64"),
        ("is_incremental", 3, "bool"),
        ("unit_multiplier_ns", 4, "uint64"),
    ),
    "TrackEvent": (
        ("category_iids", 3, "*uint64"),
        ("categories", 22, "*bytes"),
        ("name_iid", 10, "uint64"),
        ("name", 23, "bytes"),
        ("type", 9, "int32"),
        ("track_uuid", 11, "uint64"),
        ("counter_value", 30, "?int64"),
        ("double_counter_value", 44, "?double"),
        ("extra_counter_values", 12, "*int64"),
        ("extra_double_counter_values", 46, "*double"),
        ("flow_ids_old", 36, "*uint64"),
        ("flow_ids", 47, "*fixed64"),
        ("terminating_flow_ids_old", 42, "*uint64"),
        ("terminating_flow_ids", 48, "*fixed64"),
        ("annotations", 4, "*Annotation"),
    ),
    "Annotation": (
        ("name_iid", 1, "uint64"),
        ("name", 10, "bytes"),
        ("bool_value", 2, "?bool"),
        ("uint_value", 3, "?uint64"),
        ("int_value", 4, "?int64"),
        ("double_value", 5, "?double"),
        ("string_value", 6, "?bytes"),
        ("pointer_value", 7, "?uint64"),
        ("string_value_iid", 17, "?uint64"),
    ),
    "TrackDescriptor": (
        ("uuid", 1, "uint64"),
        ("parent_uuid", 5, "uint64"),
        ("name", 2, "bytes"),
        ("static_name", 10, "bytes"),
        ("process", 3, "ProcessDescriptor"),
        ("thread", 4, "ThreadDescriptor"),
        ("counter", 8, "CounterDescriptor"),
    ),
    "ProcessDescriptor": (("pid", 1, "int32"), ("name", 6, "bytes")),
    "ThreadDescriptor": (("pid", 1, "int32"), ("tid", 2, "int64"), ("name", 5, "bytes")),
    "CounterDescriptor": (
        ("unit", 3, "int32"),
        ("unit_multiplier", 4, "int64"),
        ("is_incremental", 5, "bool"),
        ("unit_name", 6, "bytes"),
    ),
}
_SCHEMA: Final = Schema("inferometer.perfetto", _MESSAGES, "kind", product="a Perfetto trace", extra="perfetto")


def decode_packets(data: bytes) -> Any:
    """The packets that `data` holds, each a message.

    Raises:
        Unavailable: The `protobuf` runtime isn't installed.
        ValueError: One of them can't be decoded.
    """
    return _SCHEMA.decode("Trace", data).packet
