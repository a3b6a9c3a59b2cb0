"""CUB, Thrust and rocPRIM: scans, sorts, reductions. Source: their public headers.

CUB's kernel name is the algorithm. Thrust wraps an agent, `_kernel_agent<…::ParallelForAgent<…>>`; rocPRIM a
configuration or its selector, `trampoline_kernel<…wrapped_scan_config<…>>`.
"""

import re

from inferometer.names.dtypes import dtype_of, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName, last_word, split_template
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_KINDS: tuple[tuple[str, Family], ...] = (
    ("Reduce", "reduction"),
    ("ArgMin", "reduction"),
    ("ArgMax", "reduction"),
    ("Histogram", "scan_sort"),
    ("Rle", "scan_sort"),
    ("RunLength", "scan_sort"),
    ("Scan", "scan_sort"),
    ("Sort", "scan_sort"),
    ("Select", "scan_sort"),
    ("Partition", "scan_sort"),
    ("Compact", "scan_sort"),
    ("Unique", "scan_sort"),
    ("TopK", "scan_sort"),
    ("Merge", "scan_sort"),
    ("Transform", "elementwise"),
    ("transform_kernel", "elementwise"),
    ("static_kernel", "elementwise"),
    ("dynamic_kernel", "elementwise"),
    ("ForEach", "elementwise"),
    ("AdjacentDifference", "elementwise"),
    ("BatchMemcpy", "copy"),
    ("BatchedCopy", "copy"),
    ("MemcpyKernel", "copy"),
)
_ROCPRIM: tuple[tuple[str, Family, str], ...] = (
    ("partition", "scan_sort", "partition"),
    ("select", "scan_sort", "select"),
    ("radix_sort", "scan_sort", "radix sort"),
    ("onesweep", "scan_sort", "radix sort"),
    ("merge_sort", "scan_sort", "merge sort"),
    ("block_sort", "scan_sort", "merge sort"),
    ("mergepath", "scan_sort", "merge sort"),
    ("oddeven", "scan_sort", "merge sort"),
    ("histogram", "scan_sort", "histogram"),
    ("segmented_reduce", "reduction", "segmented reduce"),
    ("reduce_by_key", "reduction", "reduce by key"),
    ("run_length", "scan_sort", "run length"),
    ("scan", "scan_sort", "scan"),
    ("lookback", "scan_sort", "scan"),
    ("sort", "scan_sort", "sort"),
    ("adjacent_difference", "elementwise", "adjacent difference"),
    ("reduce", "reduction", "reduce"),
    ("transform", "elementwise", "transform"),
    ("nth_element", "scan_sort", "select"),
    ("non_trivial", "scan_sort", "run length"),
    ("unique", "scan_sort", "select"),
    ("topk", "scan_sort", "top k"),
    ("merge", "scan_sort", "merge"),
    ("find_first_of", "scan_sort", "search"),
    ("search", "scan_sort", "search"),
    ("lower_bound", "scan_sort", "search"),
    ("upper_bound", "scan_sort", "search"),
    ("memcpy", "copy", "batch memcpy"),
    ("batch_copy", "copy", "batch copy"),
)
_THRUST: tuple[tuple[str, Family], ...] = (
    ("uninitialized_fill", "copy"),
    ("uninitialized_copy", "copy"),
    ("__fill", "copy"),
    ("__copy", "copy"),
    ("ParallelFor", "elementwise"),
    ("parallel_for", "elementwise"),
    ("Reduce", "reduction"),
    ("Scan", "scan_sort"),
    ("Sort", "scan_sort"),
    ("Unique", "scan_sort"),
    ("Merge", "scan_sort"),
    ("Partition", "scan_sort"),
    ("InitAgent", "scan_sort"),
    ("CopyIf", "scan_sort"),
    ("copy_if", "scan_sort"),
    ("SetOp", "scan_sort"),
)
_STATE = late_re(r"ScanTileState<(\w[\w ]*)[,>]")
_CONFIG = late_re(r"(?<!\w)(?:wrapped_)?(\w+?)_config(?:_selector)?\b")
_TARGET = late_re(r"target_arch\)(\d+)")


def read(name: ParsedName) -> KernelName | None:
    """A kernel of one of the three libraries."""
    spaces = name.namespaces
    if not spaces:
        return None
    if "rocprim" in spaces[:2] or "hipcub" in spaces[:2]:
        return _read_rocprim(name)
    if "thrust" in spaces[:2]:
        return _read_thrust(name)
    if "cub" in spaces[:4]:
        return _read_cub(name)
    return None


def _read_cub(name: ParsedName) -> KernelName:
    function = name.function
    family = next((family for word, family in _KINDS if word in function), None) or find_family(function) or "other"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", function.removeprefix("Device").removesuffix("Kernel")).lower()
    dtype = _dtype(name)
    return _answer("cub", family, words.replace("_", " "), dtype)


def _dtype(name: ParsedName) -> str | None:
    """The type of keys or values, where the algorithm's arguments say it plainly."""
    if "ScanByKey" in name.function:
        return None
    state = _STATE.search(name.text)
    if state:
        return dtype_of(state[1])
    arguments = name.arguments
    if "RadixSort" in name.function and arguments:
        policy = split_template(arguments[0].rsplit("::", 1)[0])[1]
        return first_dtype(policy[:1]) or first_dtype(arguments[2:3])
    if "MergeSort" in name.function or "SegmentedSort" in name.function:
        return None
    if function_reduces(name.function) and len(arguments) > 2:
        head, policy = split_template(arguments[0].rsplit("::", 1)[0])
        if "policy" in head.lower() and policy:
            return first_dtype(policy[:1])
        return first_dtype((arguments[2],))
    return None


def function_reduces(function: str) -> bool:
    """Whether it is one of the reductions whose third argument is the output's iterator."""
    return function.startswith(("DeviceReduce", "DeviceSegmentedReduce")) and "ByKey" not in function


def _read_thrust(name: ParsedName) -> KernelName:
    text = name.text
    family: Family = next((family for word, family in _THRUST if word in text), "other")
    agent = last_word(split_template(name.arguments[0])[0]) if name.arguments else name.function
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", agent.removesuffix("Agent")).lower()
    return _answer("cub", family, f"thrust {words}", None, prefix="")


def _read_rocprim(name: ParsedName) -> KernelName:
    config = name.arguments[0] if name.arguments else name.function
    chosen = _CONFIG.search(name.text)
    heads = (name.function, chosen[1] if chosen else "", last_word(split_template(config)[0]), name.text)
    known = next((rule for head in heads for rule in _ROCPRIM if rule[0] in head), None)
    family: Family = known[1] if known else "other"
    words = known[2] if known else name.function.replace("_", " ")
    arch = _TARGET.search(name.text)
    chip = {"910": "90a"}.get(arch[1], arch[1]) if arch and arch[1] != "0" else None  # 910 is rocPRIM's own number
    return _answer("rocprim", family, words, None, arch=f"gfx{chip}" if chip else None)


def _answer(
    library: Library,
    family: Family,
    words: str,
    dtype: str | None,
    *,
    arch: str | None = None,
    prefix: str | None = None,
) -> KernelName:
    return KernelName(
        library=library,
        family=family,
        dtype=dtype,
        arch=arch,
        short_name=short(library if prefix is None else prefix, words, dtype),
        evidence=Evidence(f"{library} algorithm", "D"),
    )


GRAMMAR = Grammar("cub", "namespace", read)
