"""Roles are coarser than names, and say what a launch may be."""

import pytest
from tests.analyses.steps.found.made import ADAM, ARGMAX, DECODE, EMBED, GEMM, SAMPLE, TO_DEVICE, TO_HOST

from inferometer.analyses.steps.found.roles import find_roles

FA3_DECODE = "void cutlass::device_kernel<flash::FlashAttnFwdCombine<x>>(y)"


def test_tiles_and_numbers_make_no_other_role() -> None:
    names = [GEMM, "nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNT", "triton_poi_fused_add_3", "triton_poi_fused_add_17"]
    roles = find_roles(names)
    assert [roles.of[name] for name in names] == [1, 1, 0, 0]
    assert roles.names[1] == "gemm"
    assert find_roles(reversed(names)).names == roles.names


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        (SAMPLE, "sampling"),
        (ARGMAX, "sampling"),
        (ADAM, "optimizer"),
        (EMBED, "embedding"),
        (TO_HOST, "to_host"),
        ("[CUDA memcpy Device-to-Host]", "to_host"),
        (TO_DEVICE, "to_device"),
        (GEMM, "gemm"),
        (DECODE, "decode"),
        (DECODE, "attention"),
        ("kernel_unified_attention_2d", "either"),
    ],
)
def test_a_name_tells_what_a_launch_may_be(name: str, flag: str) -> None:
    roles = find_roles([name, "unknown_thing"])
    assert getattr(roles, flag)[roles.of[name]]
    assert not getattr(roles, flag)[roles.of["unknown_thing"]]


def test_what_joins_or_prepares_attention_is_no_attention() -> None:
    roles = find_roles([FA3_DECODE, "create_flashinfer_kv_indices_triton"])
    assert not roles.attention.any()


def test_backward_of_an_embedding_is_no_embedding() -> None:
    roles = find_roles(["void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, long>(int)"])
    assert not roles.embedding.any()
