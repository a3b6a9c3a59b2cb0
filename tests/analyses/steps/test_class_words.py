"""Sentences name kernels by what their names say, and leave labels and ops alone."""

import pytest

from inferometer.analyses.steps.class_words import say_class


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvjet_tst_192x32_64x8_2x1_v_bz_TNT", "nvjet gemm bf16 192x32x64 s8 cl2x1 TNT"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "moe matmul bf16×mxfp4 16x128x256"),
        ("matmul:wo", "matmul:wo"),
        ("aten::linear", "aten::linear"),
        ("GPU busy", "GPU busy"),
        ("", ""),
    ],
)
def test_a_kernel_is_said_as_it_is_shown_and_a_label_as_it_is(name: str, said: str) -> None:
    assert say_class(name) == said
