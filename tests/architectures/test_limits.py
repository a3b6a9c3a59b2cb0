"""Sizes in a configuration are held against limits before anything is counted to or made room for."""

import json
import os
from pathlib import Path

import pytest

from inferometer.architectures.known import BundledModel, bundled_models, read_model
from inferometer.architectures.limits import FIELDS, INTEGER, most_of, require_sizes
from inferometer.errors import FormatError, InputError


@pytest.mark.parametrize("bundled", bundled_models(), ids=lambda bundled: bundled.name)
def test_published_models_are_far_below(bundled: BundledModel) -> None:
    config = bundled.config
    require_sizes(config, "x")
    for field in FIELDS.keys() & config.keys():
        if config[field] is not None:
            assert 8 * config[field] <= FIELDS[field], field


@pytest.mark.parametrize("field", [*FIELDS, "anything"])
@pytest.mark.parametrize("part", ["", "text_config.", "a.b.c."])
def test_a_field_above_its_limit_is_named_wherever_it_stands(field: str, part: str) -> None:
    config: dict[str, object] = {field: most_of(field)}
    require_sizes(config, "config.json")
    config = {field: most_of(field) + 1}
    for name in reversed(part.split(".")[:-1]):
        config = {"other": 1, name: config}
    with pytest.raises(FormatError, match=rf"^config\.json: {part}{field}: expected at most [\d,]+, found [\d,]+"):
        require_sizes(config, "config.json")


def test_what_no_machine_prints_is_still_one_line() -> None:
    for digits in (31, 401, 4_300):  # as many as msgspec and Python read
        with pytest.raises(FormatError, match=f"a: expected at most 4,294,967,296, found a number of {digits} digits"):
            require_sizes({"a": 10 ** (digits - 1)}, "x")
    assert most_of("a") == INTEGER
    deep: dict[str, object] = {"vocab_size": 10**9}
    for _ in range(100_000):
        deep = {"x": deep}
    with pytest.raises(FormatError, match="vocab_size"):
        require_sizes(deep, "x")
    while deep:  # Python frees nested objects by recursion
        deep = deep.pop("x", {})  # type: ignore[assignment]


def test_padding_is_one_of_the_tokens() -> None:
    require_sizes({"pad_token_id": 9, "vocab_size": 10}, "x")
    with pytest.raises(FormatError, match=r"x: pad_token_id: expected a token below vocab_size \(10\), found 10"):
        require_sizes({"pad_token_id": 10, "vocab_size": 10}, "x")


def test_a_pipe_in_a_folder_is_refused_and_one_that_was_named_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(InputError, match=r"config\.json: expected a file, found a pipe"):
        read_model(tmp_path)
    config = json.dumps(bundled_models()[0].config).encode()
    reading, writing = os.pipe()
    os.write(writing, config)
    os.close(writing)
    assert read_model(f"/dev/fd/{reading}").layers == bundled_models()[0].model.layers
    os.close(reading)
    with pytest.raises(InputError, match="/dev/zero: expected a file, found a device"):
        read_model("/dev/zero")
