"""HolisticTraceAnalysis: load one rank's trace and break its kernel time down. Prints the sum over kernels.

    hta_breakdown.py FILE              its defaults, as its documentation shows
    hta_breakdown.py FILE --fastest    the fastest settings known: the ijson backend that its source recommends for
                                       large traces, which leaves Python frames unread, and the least arguments

Copies and sets of memory are left out of the sum, as in ours.
"""

from __future__ import annotations

import json
import sys

from hta.configs.parser_config import ParserBackend, ParserConfig
from hta.trace_analysis import TraceAnalysis


def main(path: str, fastest: bool) -> None:
    if fastest:
        config = ParserConfig(ParserConfig.get_minimum_args())
        config.set_parser_backend(ParserBackend.IJSON_BATCH_AND_COMPRESS)
        ParserConfig.set_default_cfg(config)
    analysis = TraceAnalysis(trace_files={0: path})
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    sum_us = kernels.loc[kernels["kernel_type"] != "MEMORY", "sum (us)"].sum()
    print(json.dumps({"kernel_ns": round(float(sum_us) * 1000)}))


if __name__ == "__main__":
    main(sys.argv[1], "--fastest" in sys.argv[2:])
