"""What a test is called: what it does, and the settings in which the tests of its file differ."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inferometer.formats.llama_bench.fields import Fields

_RESULTS: Final = frozenset(
    {
        *("build_commit", "build_number", "cpu_info", "gpu_info", "model_filename", "model_size", "model_n_params"),
        *("n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"),
        *("samples_ns", "samples_ts", "test", "t/s", "size", "params"),
    }
)
TITLES: Final = {  # of Markdown's columns: the field's name in the other forms
    "model": "model_type",
    "backend": "backends",
    "ngl": "n_gpu_layers",
    "sm": "split_mode",
    "threads": "n_threads",
    "nkvo": "no_kv_offload",
    "fa": "flash_attn",
    "lm": "load_mode",
    "embd": "embeddings",
    "nopo": "no_op_offload",
    "noh": "no_host",
    "rpk": "repack",
    "dev": "devices",
    "ts": "tensor_split",
    "ot": "tensor_buft_overrides",
    "fitt": "fit_target",
    "fitc": "fit_min_ctx",
    "mmap": "use_mmap",
}
_PRINTED: Final = re.compile(r"(?:pp ?(\d{1,15}))?\+?(?:tg ?(\d{1,15}))?(?: @ d(\d{1,15}))?")


@dataclass(frozen=True)
class Work:
    """Tokens of a repetition: of the prompt, generated, and in the KV cache before."""

    prompt: int
    generated: int
    depth: int

    @property
    def tokens(self) -> int:
        """What the rate counts."""
        return self.prompt + self.generated

    @property
    def phase(self) -> str | None:
        """What kind of steps a repetition has."""
        if self.prompt and self.generated:
            return "mixed"
        return "prefill" if self.prompt else "decode" if self.generated else None

    @property
    def name(self) -> str:
        """As llama-bench prints it: `pp512`, `tg128 @ d4096`."""
        parts = [f"pp{self.prompt}"] if self.prompt else []
        parts += [f"tg{self.generated}"] if self.generated else []
        return "+".join(parts) + (f" @ d{self.depth}" if self.depth else "")


def work_of(fields: Fields) -> Work | None:
    """What a test does; None where its fields don't say."""
    if printed := fields.text("test"):
        match = _PRINTED.fullmatch(" ".join(printed.split()))
        numbers = [int(text or 0) for text in match.groups()] if match else [0]
        return Work(*numbers) if any(numbers[:2]) else None
    prompt, generated = fields.count("n_prompt"), fields.count("n_gen")
    if prompt is None or generated is None or not prompt + generated:
        return None
    return Work(prompt, generated, fields.count("n_depth") or 0)


def settings_of(tests: Sequence[Fields]) -> tuple[dict[str, str], list[str]]:
    """What all tests have alike, and the names of what differs among them, each in the order of the file."""
    names = [name for name in dict.fromkeys(name for test in tests for name in test.names()) if name not in _RESULTS]
    values = {name: {test.text(name) for test in tests} for name in names}
    alike = {name: text for name, texts in values.items() if len(texts) == 1 and (text := next(iter(texts)))}
    return alike, [name for name, texts in values.items() if len(texts) > 1]


def full_name(work: Work, test: Fields, differing: Sequence[str]) -> str:
    """`tg128, n_threads 4`; a model's name needs no word before it."""
    words = [(name, test.text(name)) for name in differing]
    more = [text if name == "model_type" else f"{name} {text}" for name, text in words if text is not None]
    return ", ".join([work.name, *more])
