"""What the observer itself costs a step, beside an observer that does nothing: the least that PyTorch makes of any.

    python -m benchmarks.observer_cost --threads 1 --rounds 200

The same steps as in `record_overhead`, one of each way in turn in an order that is drawn anew each round, so that what
the machine does meanwhile hits all alike. Nothing is handed over or written between a step's begin and end: that is
done by other threads, twice a second, and `record_overhead` has it. The ratio of a way is the median over rounds of
its step over the unobserved one of the same round; the interval is where the middle 95 % of medians of rounds drawn
again lie. Times are the thread's own on a CPU with one thread of PyTorch, else on the wall.

Needs torch and a C++ compiler; not part of CI.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.record_overhead import interval, make_decoding, make_work

EMPTY = """
#include <ATen/record_function.h>
static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) { return nullptr; }
static void end(const at::RecordFunction&, at::ObserverContext*) {}
static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
void start() {
  if (handle == at::INVALID_CALLBACK_HANDLE) {
    handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
  } else {
    at::reenableCallback(handle);
  }
}
void stop() { at::disableCallback(handle); }
"""
_SEED = 12
_ROWS = 1 << 18

Way = tuple[Callable[[], object], Callable[[], object]]  # begins, ends


def make_ways() -> dict[str, Way]:
    """What is done before and after a step."""
    import torch
    from torch.utils.cpp_extension import load_inline

    from inferometer.record.interception import stacks
    from inferometer.record.interception.observer.build import find_observer

    observer: Any = find_observer().module
    if observer is None:
        raise SystemExit(f"the observer can't be built: {find_observer().why}")
    flags = ["-O2", "-DNDEBUG"]
    empty: Any = load_inline("empty_observer", EMPTY, functions=["start", "stop"], extra_cflags=flags)
    numbers: dict[int, int] = {}

    def start(*, modules: bool, frames: bool) -> None:
        observer.start(stacks.learn, frames, _ROWS)
        if modules:
            number_of = lambda module, outermost: numbers.setdefault(id(module), len(numbers))  # noqa: E731
            observer.watch(torch.nn.Module._call_impl, vars(torch.compiler), number_of)

    def stop() -> None:
        observer.unwatch()
        observer.stop()
        observer.take()

    def nothing() -> None:
        pass

    return {
        "unobserved": (nothing, nothing),
        "unobserved again": (nothing, nothing),
        "empty observer": (empty.start, empty.stop),
        "ops": (lambda: start(modules=False, frames=False), stop),
        "ops, modules": (lambda: start(modules=True, frames=False), stop),
        "ops, modules, functions": (lambda: start(modules=True, frames=True), stop),
    }


def time_step(step: Callable[[], None], way: Way, clock: Callable[[], int]) -> int:
    """Ns of the second of two steps, so that what is seen first isn't in it."""
    begin, end = way
    begin()
    try:
        step()
        began = clock()
        step()
        return clock() - began
    finally:
        end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decoding", action="store_true", help="30 layers of a real decoder, of --hidden")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    import torch

    torch.set_num_threads(given.threads)
    clock = time.thread_time_ns if given.threads == 1 else time.perf_counter_ns
    of = (given.layers, given.tokens)
    step = make_decoding(given.hidden) if given.decoding else make_work("cpu", given.hidden, *of)
    ways, draw = make_ways(), random.Random(_SEED)
    for _ in range(3):
        step()
    load = os.getloadavg()
    times: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name in draw.sample(list(ways), len(ways)):
            times[name].append(time_step(step, ways[name], clock))
    loads = f"load average {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after"
    print(f"torch {torch.__version__}, {given.threads} threads; {loads}")
    for name, own in times.items():
        ratios = [each / base for each, base in zip(own, times["unobserved"], strict=True)]
        low, high = interval(ratios, draw)
        took_ms = statistics.median(own) / 1e6
        least_ms = min(own) / 1e6
        print(
            f"{name:24} {took_ms:8.3f} ms  x {statistics.median(ratios):.3f}  ({low:.3f} to {high:.3f})  "
            f"least {least_ms:8.3f} ms"
        )


if __name__ == "__main__":
    main()
