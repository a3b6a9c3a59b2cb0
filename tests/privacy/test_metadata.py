"""What stands next to a profile's events and nobody meant to share."""

import json
from typing import Any

import pytest
from tests.privacy.secret_texts import SECRETS

from inferometer.privacy.metadata import Names, Secret, blank_metadata, is_worth_searching, search_metadata
from inferometer.privacy.secrets import NAMED

TOKEN = SECRETS["Hugging Face access token"]


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ({"env": {"HF_TOKEN": TOKEN}}, [Secret("meta.env.HF_TOKEN", "Hugging Face access token")]),
        ({"env": {"HF_TOKEN": "hf_" + "X" * 34}}, [Secret("meta.env.HF_TOKEN", NAMED, masked=True)]),
        ({"words": ["a", f"--token={TOKEN}"]}, [Secret("meta.words[1]", "Hugging Face access token")]),
        ({"DB_PASSWORD": "s3cr3t-w0rd"}, [Secret("meta.DB_PASSWORD", NAMED)]),
        ({"apiKey": "abcdefgh"}, [Secret("meta.apiKey", NAMED)]),
        ({"HF_TOKEN_PATH": "/x/token", "max_tokens": 8, "pad_token": "<pad>", "key": "value", "API_KEY": ""}, []),
        ({TOKEN: {"password": "s3cr3t-w0rd"}}, [Secret("meta.***.password", NAMED)]),
        (TOKEN, [Secret("meta", "Hugging Face access token")]),
    ],
)
def test_a_secret_is_found_with_its_place_and_kind(value: Any, secrets: list[Secret]) -> None:
    assert search_metadata("meta", value).secrets == secrets


def test_an_environment_is_told_by_its_usual_variables() -> None:
    env = {"PATH": "/bin", "HOME": "/root", "SHELL": "sh", "N": "1"}
    assert search_metadata("meta", {"env": env, "other": {"PATH": "/bin"}}).environments == {"meta.env": 4}


def test_names_of_people_and_machines_are_found_by_their_fields() -> None:
    value = {"username": "mallory", "uname": {"node": "gpu-node-17"}, "env": {"USER": "root", "HOSTNAME": "box42"}}
    assert search_metadata("meta", value).names == Names(frozenset({"mallory"}), frozenset({"gpu-node-17", "box42"}))


def test_a_field_of_any_depth_is_searched() -> None:
    value: Any = TOKEN
    for _ in range(5_000):
        value = [value]
    assert len(search_metadata("meta", value).secrets) == 1


def test_the_quick_look_overlooks_no_field() -> None:
    for value in ({"a": TOKEN}, {"password": "s3cr3t-w0rd"}, {"HOSTNAME": "box42"}, {"PATH": "/bin", "HOME": "/root"}):
        assert is_worth_searching(json.dumps(value).encode())
    assert not is_worth_searching(b'{"rank": 0, "backend": "nccl"}')


def test_values_are_blanked_by_form_and_by_name() -> None:
    value = {"a": [f"x {TOKEN}", 7, None], "api_key": "abcdefgh", "TOKEN": ["abcdefgh"], TOKEN: "left"}
    assert blank_metadata(value) == {"a": ["x ***", 7, None], "api_key": "***", "TOKEN": ["***"], "***": "left"}
