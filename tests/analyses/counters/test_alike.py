"""Kernels of two files are one by name, grid and block, whatever their names' spelling."""

import pytest

from inferometer.analyses.counters.alike import Kind, number_alike

SMALL, LARGE = ((1, 1, 1), (128, 1, 1)), ((9, 1, 1), (128, 1, 1))


SPELLINGS = {
    "plain": ("add_kernel", "add_kernel"),
    "namespaces": (
        (
            "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16, "
            "at::native::(anonymous namespace)::SoftMaxForwardEpilogue, long, 4>(c10::BFloat16*, c10::BFloat16 const*, "
            "long)"
        ),
        (
            "void at::<unnamed>::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16, "
            "at::<unnamed>::SoftMaxForwardEpilogue, long, 4>(T3 *, const T1 *, T5)"
        ),
    ),
    "truth": (
        (
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, false, true>("
            "cublasLt::cublasSplitKParams<float>, float const*)"
        ),
        (
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, 0, 1>("
            "cublasLt::cublasSplitKParams<T6>, const T4 *)"
        ),
    ),
    "lambdas": (
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
            "at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)"
            "::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >("
            "at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1})"
        ),
        (
            "void at::elementwise_kernel<128, 4, void at::gpu_kernel_impl_nocast<at::CUDAFunctor_add<float>>("
            "at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
        ),
    ),
    "counters without arguments": ("void at::native::(anonymous namespace)::softmax<float, 4>(float*)", "softmax"),
    "trace without arguments": ("flash_fwd", "void flash::flash_fwd<Traits<64, 128>, true>(Params)"),
    "mangled": ("void ns::k<int>(int*)", "_ZN2ns1kIiEEvPT_"),
}


@pytest.mark.parametrize(("traced", "counted"), SPELLINGS.values(), ids=SPELLINGS)
def test_one_kernel_in_two_spellings(traced: str, counted: str) -> None:
    assert number_alike([Kind(traced, SMALL)], [Kind(counted, SMALL)]) == ([0], [0])


@pytest.mark.parametrize(
    ("traced", "counted"),
    [
        ("void at::native::f<float, 4>(float*)", "void at::f<float, 8>(T1 *)"),
        ("void at::native::f<float>(float*)", "void at::f<double>(T1 *)"),
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT"),
    ],
)
def test_two_kernels_stay_two(traced: str, counted: str) -> None:
    assert number_alike([Kind(traced, SMALL)], [Kind(counted, SMALL)]) == ([None], [None])


def test_grid_and_block_part_launches_of_one_name() -> None:
    found = number_alike([Kind("k", SMALL), Kind("k", LARGE)], [Kind("k", LARGE), Kind("k", SMALL)])
    assert found[0] == found[1][::-1]
    assert len(set(found[0])) == 2
    assert number_alike([Kind("k", SMALL)], [Kind("k", LARGE)]) == ([None], [None])


def test_what_one_file_lacks_does_not_part() -> None:
    assert number_alike([Kind("k", None)], [Kind("k", LARGE)]) == ([0], [0])
    assert number_alike([Kind("k", SMALL)], [Kind("k", None)]) == ([0], [0])


def test_the_exact_name_comes_first() -> None:
    """A function without arguments isn't that of a template's instance that has a kernel of its own."""
    traced = [Kind("void a::k<1>(int)", SMALL), Kind("void a::k<2>(int)", SMALL)]
    here, there = number_alike(traced, [Kind("void a::k<2>(int)", SMALL), Kind("k", SMALL)])
    assert (here, there) == ([1, 0], [0, 1])
