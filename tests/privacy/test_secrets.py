"""What looks like a secret in a text, and what doesn't."""

import polars as pl
import pytest
from tests.privacy.secret_texts import BODY, SECRETS, planted

from inferometer.privacy.secrets import (
    blank_secrets,
    find_secrets,
    is_masked,
    names_a_secret,
    secret_hints,
    secret_kinds,
    secret_pattern,
)


def test_each_kind_has_a_planted_secret_and_says_its_source() -> None:
    assert {kind.name for kind in secret_kinds()} == {kind for kind, *_ in planted()}
    assert all(len(kind.source) > 20 and kind.hints for kind in secret_kinds())


@pytest.mark.parametrize(("kind", "text", "secret"), planted())
def test_a_secret_of_each_kind_is_found_and_blanked(kind: str, text: str, secret: str) -> None:
    (found,) = find_secrets(text)
    assert (found.kind, text[found.start : found.end]) == (kind, secret)
    assert blank_secrets(text) == text.replace(secret, "***")
    assert blank_secrets(blank_secrets(text)) == blank_secrets(text)


@pytest.mark.parametrize(("kind", "text", "secret"), planted())
def test_the_quick_look_overlooks_none(kind: str, text: str, secret: str) -> None:
    near = pl.Series([text])
    assert near.str.contains_any(list(secret_hints()), ascii_case_insensitive=True).item()
    assert near.str.contains(secret_pattern()).item()


@pytest.mark.parametrize(
    ("text", "blanked"),
    [
        ("vllm serve m --api-key s3cr3t-w0rd --port 8000", "vllm serve m --api-key *** --port 8000"),
        ("args: Namespace(port=8000, api_key='s3cr3t-w0rd')", "args: Namespace(port=8000, api_key='***')"),
        ("{'hf_token': 's3cr3t-w0rd'}", "{'hf_token': '***'}"),
        ("PASSWORD=hunter22;PORT=1", "PASSWORD=***;PORT=1"),
        (f"two {SECRETS['GitHub token']} {SECRETS['Slack token']}", "two *** ***"),
    ],
)
def test_a_value_behind_a_secret_name_is_blanked(text: str, blanked: str) -> None:
    assert blank_secrets(text) == blanked


@pytest.mark.parametrize(
    "text",
    [
        *("max_tokens=4096", "--max-num-batched-tokens 8192", "--tokenizer meta-llama/Llama-3", "eos_token='</s>1'"),
        *("EOS_TOKEN=<|eot_id|>", "key=value_states", "the secret key is 1234567", "token: torch.Tensor"),
        *("SSH_KEY=/home/x/.ssh/id", "HF_TOKEN=$HF_TOKEN", "HF_TOKEN=", "HF_TOKEN=***", "api_key=None"),
        *("http://host:80/a@b", "hf_transfer==0.1.9", "hf_XXXXXXXX", "task-queue-12345678901234567890", "sk-short"),
        *("void hf_rms_norm_kernel<float>(float*)", "tokenization_utils.py(10): token_to_id", "eyJhbGciOiJIUzI1NiJ9"),
        "HF_TOKEN=hf_" + "X" * 34,
    ],
)
def test_what_only_resembles_one_is_left(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    ("value", "masked"),
    [("hf_" + "X" * 34, True), ("***", True), ("<redacted>", True), ("sk-xxxxxxxx", True), ("hf_" + BODY[:34], False)],
)
def test_a_mask_is_told_from_a_secret(value: str, masked: bool) -> None:
    assert is_masked(value) is masked


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "apiKey", "--api-key", "DB_PASSWORD", "access_token", "token"]
)
def test_names_of_secrets(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "max_tokens", "pad_token", "key", "HF_TOKEN_PATH", "monkey", ""]
)
def test_names_of_other_things(name: str) -> None:
    assert not names_a_secret(name)
