"""Names on a screen: what they tell, no two alike, in the width that there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from inferometer.reports.screen.shown_names import (
    LEAST_WIDTH,
    cut_middle,
    cut_names,
    label_kernels,
    parting_words,
    readable_kernel,
)

PIECES = (
    "at::native::",
    "vectorized_",
    "elementwise_kernel",
    "<4, ",
    "float",
    "half",
    ">",
    "(int)",
    " ",
    "#2",
    "…",
    "核",
)
NAMES = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
"""Any text, and texts that begin and end alike for long."""


def test_a_kernel_is_called_what_its_name_tells() -> None:
    names = ["_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "nvjet_tst_192x32_64x8_2x1_v_bz_TNT"]
    assert [*label_kernels(names).values()] == [
        "moe matmul bf16×mxfp4 16x128x256",
        "nvjet gemm bf16 192x32x64 s8 cl2x1 TNT",
    ]


def test_a_name_that_tells_nothing_stays_without_return_type_and_parameters() -> None:
    name = "std::enable_if<(((8)>(0)))&&(true), void>::type quux<float, 8>(float*, int)"
    assert label_kernels([name]) == {name: "quux<float,8>"}


def test_kernels_that_decode_alike_are_told_apart_by_the_words_that_differ() -> None:
    name = (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy{}<OpaqueType<{}u>, unsigned int, 4, 64, 64>(int)"
    )
    names = [name.format(*kind) for kind in (("", 2), ("", 4), ("_vectorized", 4))]
    assert [*label_kernels(names).values()] == ["concat [2]", "concat [4]", "concat [vectorized]"]


def test_names_that_differ_in_their_parameters_alone_are_told_apart_by_these() -> None:
    labels = label_kernels(["void quux<4>(float*)", "void quux<4>(double*)"])
    assert [*labels.values()] == ["quux<4> [float]", "quux<4> [double]"]


def test_names_that_look_the_same_are_numbered() -> None:
    assert [*label_kernels(["a\tb", "a b", "a\nb"]).values()] == ["a b", "a b #2", "a b #3"]


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("_Z4quuxIfEvPfi", "void quux<float>(float*, int)"),
        ("_ZN7sgl_hip10activation4quuxI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_", None),
        ("_Z", "_Z"),
    ],
)
def test_the_whole_name_is_never_mangled_where_anything_of_it_can_be_read(name: str, whole: str | None) -> None:
    assert readable_kernel(name) == (whole or "sgl_hip::activation::quux<__hip_bfloat16…")


def test_a_cut_name_keeps_its_ends_and_its_place_in_a_tree() -> None:
    assert cut_middle("void at::native::elementwise_kernel", 20) == "void at::na…e_kernel"
    assert cut_middle("  " * 20 + "model.layers.0.mlp", 15) == "     mod….0.mlp"[:5] + cut_middle(
        "model.layers.0.mlp", 10
    )


def test_names_that_differ_in_the_middle_show_it() -> None:
    ends = "void at::native::vectorized_elementwise_kernel<4, {}Functor<float>, std::array<char*, 3ul> >"
    shown = cut_names({name: name for name in (ends.format("Add"), ends.format("Mul"))}, 40)
    assert [text.count(part) for text, part in zip(shown.values(), ("Add", "Mul"), strict=True)] == [1, 1]


@given(st.lists(NAMES, unique=True, max_size=12), st.integers(LEAST_WIDTH, 70))
def test_no_two_names_are_shown_alike_and_all_fit(names: list[str], width: int) -> None:
    labels = label_kernels(names)
    shown = cut_names(labels, width)
    assert len({*labels.values()}) == len({*shown.values()}) == len(names)
    assert all(cell_len(text) <= width for text in shown.values())


@given(st.lists(NAMES, unique=True, max_size=12), st.integers(LEAST_WIDTH, 70))
def test_a_name_that_fits_and_is_like_no_other_stays(names: list[str], width: int) -> None:
    shown = cut_names({name: name for name in names}, width)
    assert all(shown[name] == name for name in names if cell_len(name) <= width and "…" not in name and "#" not in name)


@given(st.lists(NAMES, unique=True, min_size=2, max_size=12))
def test_the_words_at_which_names_part_are_in_the_names(names: list[str]) -> None:
    assert all(word in name for name, words in parting_words(names).items() for word in words)
