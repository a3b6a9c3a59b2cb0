"""Names that a tool or a table cut: what stands whole in them decides, the last word only where it is whole."""

import pytest

from inferometer.names import decode


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("_fused_rmsnorm_quant_ker...", "norm"),  # what follows can only be `kernel`
        ("_fused_rmsnorm_qua...", "norm"),
        ("_fused_rmsnorm_…", "norm"),
        ("rotary_embed...", "rope"),
        ("_update_norm...", "other"),  # of `normal`, say
        ("_assign_scat...", "other"),
        ("apply_softmax_to...", "softmax"),
        ("applySoftmaxTo...", "softmax"),
        ("SoftmaxW...", "softmax"),
        ("softmax...", "other"),  # no label of WebGPU, nor a word
        ("softmax_...", "softmax"),
        ("copy_ker...", "copy"),
        ("add_inpl...", "other"),  # a weak word, and who knows what stood beside it
        ("void foo::rms_norm_ker...", "norm"),
        ("void foo::layer_nor...", "other"),
        ("void foo::rms_norm<float, __nv_bfl...", "norm"),  # cut in its arguments: the function is whole
        ("void (anonymous namespace)::add_rows<flo...", "elementwise"),
        ("void (anonymous namespace)::add_ro...", "other"),
        ("void at::native::(anonymous namespace)::GammaBetaBac...", "norm"),  # only one listed function begins so
        ("void at::native::(anonymous namespace)::fused_dropou...", "random"),
        ("void at::native::(anonymous namespace)::red...", "other"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFuncto...", "copy"),
        ("void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_c...", "copy"),
        ("void at::native::vectorized_elementwise_kernel<8, at::native::GeluCU...", "activation"),
        ("void at::native::vectorized_elementwise_kernel<8, at::native::si...", "elementwise"),  # silu, sin, sigmoid
        ("_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_23direct_copy_k", "copy"),
        ("void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimize", "optimizer"),
        ("void cutlass::Kernel<cutlass_80_wmma_tensorop_f16_s1...", "gemm"),
        ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_f1...", "conv"),
        ("void cutlass_cudnn_train::Kernel<cutlass_cudnn_train...", "conv"),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashA...", "attention"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdCombi...", "attention_combine"),
        ("_ZN7ck_tile6kentryILi64ELi2ENS_22FmhaBwdOGradDotOKer...", "attention"),
    ],
)
def test_a_word_that_was_cut_decides_nothing(name: str, family: str) -> None:
    assert decode(name).family == family


def test_a_name_as_long_as_a_buffer_may_have_been_cut() -> None:
    whole = "launch_of_a_kernel_whose_name_is_long_enough_to_be_cut_by_tools_"
    cut = (whole + "softmax")[:63]
    assert (len(cut), decode(cut).family) == (63, "other")
    assert decode("x" * 50 + "_softmax").family == "softmax"
    assert decode("x" * (63 - 8) + "_softmax").family == "other"
    assert decode(f"void foo::{'x' * 40}_softmax<{'T' * 5}>()"[:63]).family == "softmax"
