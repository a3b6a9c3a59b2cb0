"""Texts of a copy to share."""

import pytest

from inferometer.privacy.metadata import Names
from inferometer.privacy.redaction import Redactor


def redact(*texts: str, names: Names | None = None, hosts: tuple[str, ...] = ()) -> list[str]:
    redactor = Redactor(names)
    redactor.learn(hosts, hosts=True)
    redactor.learn(texts)
    return [redactor.blank(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "blanked"),
    [
        ("/home/alice/serve/model.py(12): forward", "~user-1/serve/model.py(12): forward"),
        ("/Users/alice/x.py(1): f", "~user-1/x.py(1): f"),
        (r"C:\Users\Alice Smith\x.py(1): f", r"~user-1\x.py(1): f"),
        (r'["C:\\Users\\alice\\x"]', r'["~user-1\\x"]'),
        ("/root/.cache/vllm/a.py(3): g", "~user-1/.cache/vllm/a.py(3): g"),
        ("/tmp/torchinductor_alice/ab/c.py(3): call", "/tmp/torchinductor_user-1/ab/c.py(3): call"),
        ("ssh://alice@login7.example.com/x", "ssh://user-1@host-1/x"),
        ("tcp://10.0.0.7:29500", "tcp://host-1:29500"),
        ("10.0.0.7:29500 joined", "host-1:29500 joined"),
        ("mail alice@example.com", "mail email-1"),
        ("python train.py --data /x", "command-1"),
        ("run: /usr/bin/python3 -m vllm serve", "run: command-1"),
        ("vllm serve meta/llama", "command-1"),
        ("HF_HOME=/mnt/x CUDA_VISIBLE_DEVICES=0", "HF_HOME=value-1 CUDA_VISIBLE_DEVICES=0"),
    ],
)
def test_who_and_where_are_blanked(text: str, blanked: str) -> None:
    assert redact(text) == [blanked]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "vllm/v1/engine/core.py(123): step",
            "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py(5): forward",
        ),
        *(
            "nn.Module: Linear_3",
            "<built-in method matmul of type object at 0x7f>",
            "aten::_scaled_dot_product_attention",
        ),
        *("execute_context_1(888)_generation_0(0)", "ProfilerStep#7", "BLOCK_M=64 BLOCK_N=128", "/app/root/x.py(1): f"),
        *("thread 639 (pt_autograd_0)", "memcpy@GLIBC_2.17", "version 12.8.1.1", "http://localhost:8000", "M=16,N=32"),
        "/opt/homebrew/bin/x.py(1): f",
    ],
)
def test_what_tells_nobody_is_left(text: str) -> None:
    assert redact(text) == [text]


def test_the_same_name_is_the_same_placeholder_everywhere_and_others_differ() -> None:
    texts = ("/home/alice/a", "run of alice", "/home/bob/a", "alice_v2", "malice", "/Users/alice/a")
    assert redact(*texts) == ["~user-1/a", "run of user-1", "~user-2/a", "user-1_v2", "malice", "~user-1/a"]


def test_names_that_stand_beside_the_events_are_blanked_in_texts() -> None:
    names = Names(frozenset({"mallory"}), frozenset({"box42"}))
    assert redact("step of mallory on box42", names=names) == ["step of user-1 on host-1"]
    assert redact("warm-up on node17", hosts=("node17.cluster",)) == ["warm-up on host-1"]


def test_a_placeholder_that_a_text_holds_already_is_not_given_again() -> None:
    assert redact("user-1 waits", "/home/alice/a") == ["user-1 waits", "~user-2/a"]


@pytest.mark.parametrize(
    ("name", "blanked"),
    [
        ("python3 serve.py --port 8000", "command-1"),
        ("/home/alice/run.sh", "~user-1/run.sh"),
        ("VLLM::EngineCore", "VLLM::EngineCore"),
        ("stream 7 ", "stream 7 "),
        ("thread 251 (sglang::schedul)", "thread 251 (sglang::schedul)"),
        ("GPU 0", "GPU 0"),
    ],
)
def test_a_process_that_is_named_by_its_command_line_loses_it(name: str, blanked: str) -> None:
    assert Redactor().blank_process(name) == blanked


def test_redacting_twice_changes_nothing_more() -> None:
    once = redact("/home/alice/a of python x.py", "ssh://bob@node17.example.com/", "HF_HOME=/x")
    assert redact(*once) == once
