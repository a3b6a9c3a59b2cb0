"""A model that runs on WebGPU: `load.py` makes one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.program import Program
from inferometer.engines.webgpu.program_memory import PurposeMemory, memory_of
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates
from inferometer.engines.webgpu.run.executor import Adapter, LoadedModel, LoadPhase, Runner

if TYPE_CHECKING:
    from inferometer.engines.webgpu.browser.session import BrowserSession


@dataclass(frozen=True)
class ReadPart:
    """Making the contents of one part of the model: `source_bytes` read from files, `bytes` handed to the device."""

    part: str
    source_bytes: int
    bytes: int
    dur_ns: int


@dataclass
class WebGpuEngine:
    """A model that runs. `context_limit` is what its KV cache holds, which may be less than the model was made for.

    Attributes:
        device: What runs the kernels.
        place: `numpy`, `wgpu` or `browser`.
        dtype: Of matrices; of several formats their names, the most bytes first. All else is float32.
        cache_dtype: Of keys and values in the KV cache.
        weight_bytes: What weights take on the device.
        load_phases: In order, none inside of another.
        reads: Of the phases that load weights, what reading and decoding them took.
        load_ns: From nothing to a model that runs.
        load_notes: Remarks on the weights as they were read, the tokenizer and the path.
        browser: The runner, where it is a browser.
        rates: What the adapter reaches, where that was measured.
    """

    name: str
    spec: ModelSpec
    source: str
    device: str
    place: str
    dtype: str
    cache_dtype: str
    vocabulary: int
    context_limit: int | None
    tokenizer: Tokenizer
    parameters: int
    runner: Runner
    loaded: LoadedModel
    load_phases: Sequence[LoadPhase]
    reads: Sequence[ReadPart]
    load_ns: int
    load_notes: Sequence[str]
    browser: "BrowserSession | None" = None
    rates: AdapterRates | None = None

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on weights, tokenizer, path and, after the last answer, a browser's clocks."""
        return (*self.load_notes, *(() if self.browser is None else self.browser.notes))

    @property
    def adapter(self) -> Adapter:
        """What runs the kernels."""
        return self.runner.adapter

    @property
    def program(self) -> Program:
        """What runs."""
        return self.loaded.program

    @property
    def weight_bytes(self) -> int:
        """Bytes used in the buffers that hold weights."""
        return sum(each.needed_bytes for each in self.memory if each.purpose == "weights")

    @property
    def memory(self) -> Sequence[PurposeMemory]:
        """Buffers of the device by purpose."""
        return memory_of(self.program)

    def close(self) -> None:
        """Give the device back."""
        self.runner.close()
