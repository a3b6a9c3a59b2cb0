"""Which kernels a file defines, and which names of a profile are theirs."""

import pytest

from inferometer.bench.profiles.own_kernels import is_own, own_kernels


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import triton\n@triton.jit\ndef k(x): ...", {"k"}),
        ("import triton as tr\n@tr.jit(do_not_specialize=['n'])\ndef k(x, n): ...", {"k"}),
        ("from triton import jit as compiled\n@compiled\ndef k(x): ...", {"k"}),
        ("from triton import *\n@jit\ndef k(x): ...", {"k"}),
        (
            "import triton\n@triton.autotune(configs=[], key=[])\n@triton.heuristics({})\n@triton.jit\ndef k(x): ...",
            {"k"},
        ),
        ("from triton.experimental import gluon\n@gluon.jit\ndef k(x): ...", {"k"}),
        ("from triton.experimental.gluon import jit\n@jit\ndef k(x): ...", {"k"}),
        ("import triton\nclass A:\n    def f(self):\n        @triton.jit\n        def k(x): ...\n", {"k"}),
        ("import triton\ndef k(x): ...\nfast = triton.autotune([], [])(triton.jit(k))", {"k"}),
        ("import cutlass.cute as cute\n@cute.kernel\ndef k(x): ...", {"kernel_cutlass_k"}),
        (
            "from cutlass import cute\nclass A:\n    @cute.kernel\n    def k(self, x): ...",
            {"kernel_cutlass_k_candidate"},
        ),
        ("from library import rms_norm_kernel\nimport triton\nk = triton.jit(rms_norm_kernel)", set()),
        ("from numba import jit\n@jit\ndef k(x): ...", set()),
        ("import torch\n@torch.jit.script\ndef k(x): ...", set()),
        ("import triton\n@triton.testing.perf_report([])\ndef k(x): ...", set()),
        ("@jit\ndef k(x): ...", set()),
        ("def k(:", set()),
        ("\0", set()),
    ],
)
def test_functions_of_python_that_become_kernels(source: str, names: set[str]) -> None:
    assert own_kernels(source) == names


CUDA = [
    ("__global__ void k(float* x) { }", {"k"}),
    ('extern "C" __global__ void k(float* x) { }', {"k"}),
    ('extern "C" {\n__global__ void k(float* x) { }\n}\n__global__ void m() {}', {"k", "m"}),
    ("template <typename T, int N>\n__global__ void __launch_bounds__(256, 2) k(T* x) { }", {"k"}),
    ("__global__ __launch_bounds__(kThreads<4>()) void k(float* x) { }", {"k"}),
    ("static __global__ void\n// why\nk /* (not this) */ (float* x);", {"k"}),
    ("__global__ __cluster_dims__(2, 1, 1) static inline void k(int n) {}", {"k"}),
    ("__global__ C10_LAUNCH_BOUNDS_1(1024) void k(int n) {}", {"k"}),
    ("template <> __global__ void k<float, 4>(float* x) { }", {"k"}),
    ("__global__ [[nodiscard]] std::enable_if_t<true, void> k(int n) {}", {"k"}),
    (
        "namespace a::b { namespace { __global__ void k(int n) { if (n) { } } } }\n__global__ void m() {}",
        {"a::b::k", "m"},
    ),
    ('namespace a { extern "C" __global__ void k(int n) {} __global__ void m(int n) {} }', {"k", "a::m"}),
    ('// __global__ void no(int n)\n/* __global__ void no() */ const char* s = "__global__ void no()";', set()),
    ("#define K(n) __global__ void k_##n(float* x)", set()),
    ("__device__ void k(float* x) { }  /* __global__ */", set()),
    ("__global__", set()),
    ("__global__ void k(float* x", {"k"}),
]


@pytest.mark.parametrize(("text", "names"), CUDA)
def test_global_functions_in_text(text: str, names: set[str]) -> None:
    assert own_kernels(f"SOURCE = {text!r}") == names


def test_text_in_pieces_is_one_text_and_names_with_holes_arent_guessed() -> None:
    assert own_kernels("s = '__global__ void '\\\n 'k(int n) {}'") == {"k"}
    assert own_kernels("s = f'__global__ void __launch_bounds__({n}) k(int n) {{}}'") == {"k"}
    assert own_kernels("s = f'__global__ void {name}_kernel(int n) {{}}'") == frozenset()
    assert own_kernels("s = f'__global__ void kernel_{name}(int n) {{}}'") == frozenset()


def test_odd_escapes_in_text_warn_nobody() -> None:
    assert own_kernels("s = '__global__ void k(int n) { /* \\d */ }'") == {"k"}


OWN = frozenset({"k", "ns::m", "triton_poi_fused_add_0", "kernel_cutlass_f", "kernel_cutlass_kernel_candidate"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("k", True),
        ("k_0d1d2de", True),
        ("k_0d1d2d3456789101112de", True),
        ("k_0", True),
        ("k_1", False),
        ("k_0d2d", False),
        ("k_2", False),
        ("_Z1kIfEvPT_i", True),
        ("void k<float>(float*, int)", True),
        ("void (anonymous namespace)::k<float, 4>(float*)", True),
        ("k(float*, int)", True),
        ("k.kd", True),
        ("kk", False),
        ("void ns::m<float>(float*)", True),
        ("void m<float>(float*)", False),
        ("void vllm::k<c10::BFloat16>(c10::BFloat16*)", False),
        ("triton_poi_fused_add_0", True),
        ("triton_poi_fused_mul_0", False),
        ("kernel_cutlass_f_tensorptrf32gmemalign16o1_0", True),
        ("my_prefix_kernel_cutlass_f_tensorptrf32gmem_0", True),
        ("kernel_cutlass_fused_tensorptrf32gmem_0", False),
        ("kernel_cutlass_f_libraryNorm_object_at__tensorptrf32gmem_0", False),
        ("kernel_cutlass_kernel_candidateNorm_object_at__tensorptrbf16gmem_0", True),
        ("kernel_cutlass_kernel_quackrmsnormRMSNorm_object_at__tensorptrbf16gmem_0", False),
        ("Memcpy DtoD (Device -> Device)", False),
        ("", False),
    ],
)
def test_names_as_profilers_show_them(name: str, expected: bool) -> None:
    assert is_own(name, OWN) is expected
    assert not is_own(name, frozenset())


def test_a_published_form_of_both_kinds_of_kernels() -> None:
    source = '''
import torch
from torch.utils.cpp_extension import load_inline
import triton
import triton.language as tl
from library import layer_norm_kernel

CUDA = r"""
#include <cuda_bf16.h>
template <typename scalar_t> __global__ void __launch_bounds__(256)
rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ in, int n) { out[0] = in[0]; }
void rms_norm(torch::Tensor out, torch::Tensor in) { rms_norm_kernel<float><<<1, 256>>>(nullptr, nullptr, 1); }
"""

@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def _add(x, y, n, BLOCK: tl.constexpr):
    pass


class Model(torch.nn.Module):
    def forward(self, x):
        layer_norm_kernel[(1,)](x)
        _add[(1,)](x, x, 1)
'''
    own = own_kernels(source)
    assert own == {"rms_norm_kernel", "_add"}
    assert is_own("void rms_norm_kernel<float>(float*, float const*, int)", own)
    assert not is_own("layer_norm_kernel", own)
