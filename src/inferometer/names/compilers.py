"""Python frames that compile, tune or build kernels, recognised from their file and function.

Source: the files of Triton (compiler, runtime, backends), PyTorch (dynamo, inductor, cpp_extension), FlashInfer,
DeepGEMM and TVM FFI. The same files also hold what runs at every launch (`launch_metadata`, `_init_handles`,
`get_arg_specialization`, `Autotuner.run`): only functions that a warm program doesn't call are listed.
"""

from functools import lru_cache
from typing import Final

from inferometer.patterns import late_re

_LINE: Final = r"(?:\(\d+\))?:\d* ?"
_FUNCTIONS: Final = (  # file, functions
    (r"triton/compiler/compiler\.py", r"compile|parse|make_backend"),
    (r"triton/compiler/code_generator\.py", r"\w+"),
    (r"triton/backends/\w+/compiler\.py", r"make_\w+"),
    (r"triton/runtime/jit\.py", r"_do_compile|compile|warmup|preload"),
    (r"triton/runtime/build\.py", r"\w+"),
    (r"triton/runtime/autotuner\.py", r"_bench|benchmark|check_disk_cache|do_bench"),
    (r"triton/testing\.py", r"do_bench\w*"),
    (r"torch/_dynamo/convert_frame\.py", r"_?compile\w*|transform|_convert_frame\w*"),
    (r"torch/_inductor/compile_fx\.py", r"_?(?:inner_)?compile_fx\w*|fx_codegen\w*|codegen_and_compile"),
    (r"torch/_inductor/codecache\.py", r"compile\w*|load\w*|_compile\w*|_load_\w*"),
    (r"torch/_inductor/async_compile\.py", r"triton|cpp\w*|wait|warm_pool"),
    (r"torch/_inductor/(?:graph|scheduler)\.py", r"run|codegen\w*|compile\w*"),
    (r"torch/_inductor/select_algorithm\.py", r"autotune\w*|benchmark\w*|precompile\w*|do_autotuning"),
    (
        r"torch/_inductor/runtime/triton_heuristics\.py",
        r"_?precompile\w*|benchmark_all_configs|autotune_to_one_config|coordinate_descent_tuning",
    ),
    (r"torch/_inductor/autotune_process\.py", r"\w+"),
    (r"torch/utils/cpp_extension\.py", r"load\w*|_jit_compile|_write_ninja\w*|_run_ninja\w*|_import_module\w*"),
    (r"flashinfer/jit/\w+\.py", r"build\w*|load_jit_ops|build_and_load|run_ninja"),
    (r"flashinfer/autotuner\.py", r"_profile\w*|_prepare_input_tensors\w*"),
    (r"deep_gemm/jit/\w+\.py", r"build|compile\w*"),
    (r"tvm_ffi/cpp/\w+\.py", r"build\w*|load\w*"),
)
_COMPILING: Final = late_re("|".join(rf"(?:^|/){file}{_LINE}(?:{names})$" for file, names in _FUNCTIONS))


@lru_cache(maxsize=65_536)
def is_compiling(frame: str) -> bool:
    """Whether a frame, `file(line): function`, compiles, tunes or builds."""
    return _COMPILING.search(frame) is not None
