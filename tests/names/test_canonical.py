"""One text for one kernel, whichever tool wrote its name."""

# ruff: noqa: E501  names of kernels are as long as they are

import csv
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.names import canonical_name
from inferometer.names.canonical import _rewrite_by_pieces, _rewrite_whole

SPELLINGS = [  # of Nsight Systems, of CUPTI, and the canonical text
    (
        "void f<(int)64, (unsigned int)8, (unsigned long)2, (bool)1>(T1 *, int)",
        "void f<64, 8u, 2ul, true>(float*, int)",
        "f<64,8,2,1>",
    ),
    ("void at::native::<unnamed>::g<float>(T1)", "void at::native::(anonymous namespace)::g<float>(float)",
     "at::native::@anon::g<float>"),
    (
        "void k<h(at::Iter &)::[lambda() (instance 3)]::operator ()() const::[lambda(float) (instance 1)]>(int)",
        "void k<h(at::Iter&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(int)",
        "k<h::{lambda()#3}::operator()()const::{lambda(float)#1}>",
    ),
    (
        "void act<__nv_bfloat16, &silu<float>>(T1 *, const T1 *, int)",
        "void act<__nv_bfloat16, &(float silu<float>(float const&))>(__nv_bfloat16*, __nv_bfloat16 const*, int)",
        "act<__nv_bfloat16,&silu<float>>",
    ),
    (
        "void k<const T &, char *, std::array<char *, (unsigned long)2>>(int)",
        "void k<T const&, char*, std::array<char*, 2ul> >(int)",
        "k<T const&,char*,std::array<char*,2>>",
    ),
    (
        "void k<(int)128, void q::n<z>(q::Iter &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
        "void k<128, q::n<z>(q::Iter&, z const&)::{lambda(int)#1}>(int, q::n<z>(q::Iter&, z const&)::{lambda(int)#1})",
        "k<128,q::n<z>::{lambda(int)#1}>",
    ),
    (
        "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::Half>::exists, void>::type vllm::norm<c10::Half, 8>(T1 *)",
        "vllm::norm<c10::Half, 8>(c10::Half*)",
        "vllm::norm<c10::Half,8>",
    ),
    ("void cub::CUB_200802_SM_800_NS::k<int>(T1)", "void cub::k<int>(int)", "cub::k<int>"),
    ("void rocprim::ROCPRIM_400200_NS::detail::k<int>(T1)", "void rocprim::detail::k<int>(int)", "rocprim::detail::k<int>"),
    ("void f<(flashinfer::MaskMode)0>(P)", "void f<(flashinfer::MaskMode)0>(P)", "f<(flashinfer::MaskMode)0>"),
    ("triton_poi_fused_clamp_sub_0", "triton_poi_fused_clamp_sub_13", "triton_poi_fused_clamp_sub"),
    ("Cijk_Alik.kd", "Cijk_Alik [clone .kd]", "Cijk_Alik"),
    ("_ZN4vllm15rms_norm_kernelIfEEvPT_", "void vllm::rms_norm_kernel<float>(float*)", "vllm::rms_norm_kernel<float>"),
    ("void f<int>('lambda'(float))", "void f<int>(x)", "f<int>"),
]  # fmt: skip


@pytest.mark.parametrize(("nsys", "cupti", "canonical"), SPELLINGS)
def test_all_spellings_meet(nsys: str, cupti: str, canonical: str) -> None:
    assert canonical_name(nsys) == canonical
    assert canonical_name(cupti) == canonical
    assert canonical_name(canonical) == canonical


@pytest.mark.parametrize(
    "name", ["Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "[CUDA memcpy Host-to-Device]"]
)
def test_the_kind_of_memory_stays(name: str) -> None:
    assert canonical_name(name) == name


@pytest.mark.parametrize(
    ("cut", "canonical"),
    [
        ("void vllm::norm<c10::Half, 8>(c10::Half*, c10::H", "vllm::norm<c10::Half,8>"),
        ("void vllm::norm<c10::Half, std::arr", "vllm::norm<c10::Half,std::arr"),
        ("void vllm::no", "vllm::no"),
        ("void k<f(int)::{lambda()#1}::operator()", "k<f::{lambda()#1}::operator()"),
        ("_ZN4vllm15rms_norm_kernelIfLi8EEEvPT_PK", "vllm::rms_norm_kernel<float,8>"),
    ],
)
def test_a_name_cut_short_is_read_as_far_as_it_goes(cut: str, canonical: str) -> None:
    assert canonical_name(cut) == canonical


TYPES = st.recursive(
    st.sampled_from(["float", "int", "c10::Half", "ns::T<8>", "unsigned int", "(ns::Mode)3", "f::{lambda(float)#1}"]),
    lambda inner: st.builds(lambda args: f"a::B<{','.join(args)}>", st.lists(inner, min_size=1, max_size=3)),
    max_leaves=8,
)


@examples(100)
@given(TYPES, st.lists(TYPES, max_size=3))
def test_a_canonical_name_is_its_own_canonical_name(template: str, arguments: list[str]) -> None:
    name = f"void lib::kernel<{', '.join([template, *arguments])}>({', '.join(arguments)})"
    once = canonical_name(name)
    assert canonical_name(once) == once
    assert " " not in once.replace("unsigned int", "")


ARGUMENTS = st.recursive(
    st.sampled_from(
        [
            *("float", "const float", "char *", "T const&", "unsigned int", "(ns::Mode)3", "(int)64", "8u", "true", ""),
            *("f(int, long)::{lambda(float)#1}", "void g<int>(T &)::[lambda(int, int) (instance 1)]", "&s<int>", "-1"),
            *(
                "&(float s<float>(float const&))",
                "&float s<float>(float)",
                "h()::{lambda()#2}::operator()() const",
                "<",
            ),
            *(
                "void (*)(int, long)",
                "decltype(a, b)",
                "(unsigned long)2",
                "{lambda(int, bool)#1}",
                ")",
                "T f(int)",
                ">",
            ),
        ]
    ),
    lambda inner: st.builds(
        lambda head, arguments, tail: f"{head}<{', '.join(arguments)}{tail}",
        st.sampled_from(["a::B", "const a::B", "void n::f", "T n::f", "f<int>::g"]),
        st.lists(inner, max_size=3),
        st.sampled_from(
            [">", " >", "> const&", ">::type", ">(int, T<int>)::{lambda(int)#1}", "> *", ">(int) const::X"]
        ),
    ),
    max_leaves=8,
)


@examples(500)
@given(st.lists(ARGUMENTS, max_size=4))
def test_pieces_read_one_by_one_tell_what_the_whole_name_tells(arguments: list[str]) -> None:
    head = f"lib::kernel<{', '.join(arguments)}>"
    quick = _rewrite_by_pieces(head)
    assert quick is None or quick == _rewrite_whole(head, is_function=True)


@examples(300)
@given(st.text())
def test_any_text_has_a_canonical_form(text: str) -> None:
    canonical_name(text)
    canonical_name(f"void f<{text}>(int)")
    canonical_name(f"_ZN{text}")


@pytest.mark.parametrize(
    "piece", ["<", "(", "a<b,", "{lambda(", "operator()", "::", "const ", "x::y<", "f(", "a\0", " ", ".kd", "[clone "]
)
def test_hostile_names_take_linear_time(piece: str) -> None:
    began = time.process_time()
    canonical_name(piece * (90_000 // len(piece)))
    canonical_name(piece * (1_000_000 // len(piece)))
    canonical_name(f"kernel{piece * (200_000 // len(piece))}]")
    assert time.process_time() - began < 5


def test_names_of_real_captures_are_their_own_canonical_names(shared_data: Path) -> None:
    with (shared_data / "kernel_names" / "labelled.csv").open(encoding="utf-8", newline="") as lines:
        names = [row["name"] for row in csv.DictReader(lines)]
    once = [canonical_name(name) for name in names]
    assert [canonical_name(name) for name in once] == once


@pytest.mark.parametrize("middle", ["add_1", "_", "1", "x"])
def test_a_hostile_inductor_name_takes_no_time(middle: str) -> None:
    name = "triton_poi_fused_" + middle * 390
    assert canonical_name(f"{name}!") == f"{name}!"
    assert canonical_name(f"{name}a_7") == f"{name}a"
    assert canonical_name(f"{name * 10}a_7") == f"{name * 10}a_7"  # no compiler makes such words
