"""Which kernels a text means, and what it doesn't."""

import time

import pytest

from inferometer.formats.kernel_table.mentions import MOST, Mentions, function_of

SPLIT = "void cublasLt::splitKreduce_kernel<(int)32, int, float>(cublasLt::cublasSplitKParams<T6>, const T4 *)"
FWD_1 = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<(int)2>>>(T1::Params)"
FWD_2 = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<(int)4>>>(T1::Params)"
COMBINE = "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<(int)8>>>>(T1::Params)"
PREPARE_8 = "void flash::prepare_varlen_num_blocks_kernel<(int)8, (bool)1>(int, int)"
PREPARE_4 = "void flash::prepare_varlen_num_blocks_kernel<(int)4, (bool)1>(int, int)"
NVJET = "nvjet_tst_128x128_64x6_2x1_v_bz_splitK_TNT"
GEMV = "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, float>(T13)"
MANGLED = "_ZN2at6native11fill_kernelEv"
NAMES = [SPLIT, FWD_1, FWD_2, COMBINE, PREPARE_8, PREPARE_4, NVJET, GEMV, MANGLED, "gemm"]


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("splitKreduce_kernel 这个 kernel 的执行似乎总和一个矩阵乘法相关 即 矩阵乘 -> splitKreduce_kernel", [SPLIT]),
        (f"{NVJET} 和 void cublasLt::splitKreduce_kernel总是在一起", [NVJET, SPLIT]),
        ("即->splitKreduce_kernel.", [SPLIT]),
        ("`flash::prepare_varlen_num_blocks_kernel`, twice", [PREPARE_8, PREPARE_4]),
        ("prepare_varlen_num_blocks_kernel<(int)4, (bool)1>", [PREPARE_4]),
        ("prepare_varlen_num_blocks_kernel<(int)4...>", [PREPARE_4]),
        ("cutlass::device_kernel<flash::FlashAttnFwdSm90...>", [FWD_1, FWD_2]),
        ("cutlass::device_kernel<flash::FlashAttnFwdSm90…>", [FWD_1, FWD_2]),
        ("cutlass::device_kernel<flash::FlashAttnFwdSm90<(int)4", [FWD_2]),
        ("cutlass::device_kernel<flash::FlashAttnFwdCombine...>", [COMBINE]),
        ("cutlass::device_kernel<flash::FlashAttnFwd>", []),
        ("device_kernel", [FWD_1, FWD_2, COMBINE]),
        (SPLIT, [SPLIT]),
        ("at::native::fill_kernel()", [MANGLED]),
        ("gemvx::kernel", [GEMV]),
        ("this kernel is a gemm", []),
        ("torch.ops.splitKreduce_kernel.default", []),
        ("other::splitKreduce_kernel", []),
        ("my_splitKreduce_kernel splitKreduce_kernel_2 splitKreduce", []),
        ("", []),
    ],
)
def test_a_text_means_these_kernels(text: str, kernels: list[str]) -> None:
    assert Mentions(NAMES).find(text) == kernels


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (SPLIT, "cublasLt::splitKreduce_kernel"),
        (FWD_1, "cutlass::device_kernel"),
        (GEMV, "internal::gemvx::kernel"),
        (NVJET, NVJET),
        ("at::native::(anonymous namespace)::foo_kernel<(int)3>(float *)", "at::native::foo_kernel"),
        ("void <unnamed>::bar(int)::[lambda() (instance 1)]::operator ()() const", "bar"),
        ("rms_norm(float*)", "rms_norm"),
        ("", ""),
        (">>>", ""),
    ],
)
def test_a_function_is_what_stands_before_its_arguments(name: str, function: str) -> None:
    assert function_of(name) == function


def test_a_mention_of_very_many_is_cut() -> None:
    assert len(Mentions(f"void k_1<{i}>()" for i in range(5_000)).find("k_1")) == MOST


@pytest.mark.parametrize("text", ["<" * 20_000, "k_1<" * 5_000, "a::" * 7_000, "k_1" * 7_000, "`" * 20_000])
def test_hostile_text_takes_no_longer(text: str) -> None:
    began = time.process_time()
    Mentions(f"void k_1<{i}>()" for i in range(1_000)).find(text)
    assert time.process_time() - began < 5
