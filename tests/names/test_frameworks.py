"""Kernels of TensorFlow, Eigen, ONNX Runtime, PaddlePaddle, MXNet and Julia, whose operator is among the arguments."""

import pytest

from inferometer.names import decode

_ORT = "onnxruntime::cuda::"
_PHI = "phi::funcs::"
_MXNET = "mxnet::op::mxnet_op::"
_MAP = "Eigen::TensorMap<Eigen::Tensor<float, 1, 1, long>, 16, Eigen::MakePointer>"


def _eigen(expression: str) -> str:
    return (
        "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
        f"{_MAP}, {expression} const> const, Eigen::GpuDevice>, long>(int)"
    )


@pytest.mark.parametrize(
    ("expression", "family"),
    [
        (
            f"Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_product_op<float, float>, {_MAP}, {_MAP}>",
            "elementwise",
        ),
        (f"Eigen::TensorCwiseUnaryOp<Eigen::internal::scalar_logistic_op<float>, {_MAP}>", "activation"),
        (f"Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_tanh_gradient_op<float>, {_MAP}>", "elementwise"),
        (f"Eigen::TensorSelectOp<{_MAP}, {_MAP}, {_MAP}>", "elementwise"),
        (f"Eigen::TensorConversionOp<Eigen::half, {_MAP}>", "copy"),
        (f"Eigen::TensorSlicingOp<Eigen::DSizes<int, 4>, {_MAP}>", "copy"),
        (f"Eigen::TensorBroadcastingOp<Eigen::array<long, 2>, {_MAP}>", "copy"),
        (f"Eigen::TensorCwiseNullaryOp<Eigen::internal::scalar_constant_op<float>, {_MAP}>", "copy"),
        (f"Eigen::TensorReductionOp<Eigen::internal::SumReducer<float>, Eigen::IndexList<int>, {_MAP}>", "reduction"),
        (
            f"Eigen::TensorConversionOp<long, Eigen::TensorTupleReducerOp<ArgMaxTupleReducer<int>, {_MAP}>>",
            "reduction",
        ),
        (
            f"Eigen::TensorGeneratorOp<tensorflow::generator::GatherNdGenerator<float>, {_MAP}>",
            "gather_scatter",
        ),
        (
            f"Eigen::TensorCwiseNullaryOp<Eigen::internal::UniformRandomGenerator<float>, {_MAP}>",
            "random",
        ),
    ],
)
def test_an_expression_of_eigen_is_what_its_operators_do(expression: str, family: str) -> None:
    assert decode(_eigen(expression)).family == family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("void Eigen::internal::FullReductionKernel<256, 128, Eigen::TensorEvaluator<Eigen::TensorR...", "reduction"),
        ("void Eigen::internal::EigenContractionKernel<float, long, Eigen::internal::TensorContractionInp...", "gemm"),
        ("void Eigen::ScanKernel<Eigen::TensorEvaluator<Eigen::TensorScanOp<Eigen::internal::SumRe...", "scan_sort"),
        ("AddV2_GPU_DT_HALF_DT_HALF_kernel", "elementwise"),
        ("Relu_GPU_DT_FLOAT_DT_FLOAT_kernel", "activation"),
        ("Cast_GPU_DT_FLOAT_DT_HALF_kernel", "copy"),
        ("void tensorflow::BiasGradNHWC_SharedAtomics<float>(int, float const*, float*, int)", "reduction"),
        ("void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 1024>(int)", "copy"),
        ("void tensorflow::(anonymous namespace)::GenerateNormalizedProb<float, float>(int)", "softmax"),
        (f"void {_ORT}_UnaryElementWise<float, __half, {_ORT}OP_Cast<float, __half>>(int)", "copy"),
        (f"void {_ORT}_UnaryElementWise<__half, __half, {_ORT}OP_Gelu<__half>>(int)", "activation"),
        (f"void {_ORT}_BinaryElementWise<float, float, float, {_ORT}OP_Add<float>>(int)", "elementwise"),
        (f"void {_PHI}VectorizedElementwiseKernel<float, {_PHI}CudaSiluFunctor<float>, 1, 1, 4>(int)", "activation"),
        (f"void {_PHI}VectorizedBroadcastKernel<{_PHI}AddFunctor<float>, float, 2, 1, 4, 3>(int)", "elementwise"),
        (f"void {_MXNET}mxnet_generic_kernel<{_MXNET}op_with_req<mxnet::op::mshadow_op::mul, 1>>(int)", "elementwise"),
        ("void mshadow::cuda::MapPlanKernel<mshadow::sv::saveto, BinaryMapExp<mshadow::op::plus>>(int)", "elementwise"),
        ("gpu_broadcast_kernel_linear(CompilerMetadata<DynamicSize>, int)", "elementwise"),
        ("[copy pageable to device memory]", "memory"),
        ("[set device memory]", "memory"),
        ("void DSE::regular_fft_pad<0, 1, 128, 16, 32, 1, float, float, float2>(float2*, float*, int)", "conv"),
        ("hybrid_ep::dispatch_kernel", "collective"),
        ("void hybrid_ep::scan<8, 256>(bool const*, int*)", "moe_routing"),
        ("cuInt8::nchwTonhwc<float, 32, 32, 2>(float const*, signed char*, int)", "copy"),
        ("dequantize_mul_mat_vec_q4_k", "gemm"),
        ("__myl_AddCastMulMeanAddSqrtDivMul", "norm"),
        ("__myl_MulCastErfCastAddMul", "activation"),
        ("triton_poi_fused_all_to_all_single_clone_permute_view_0", "copy"),
    ],
)  # fmt: skip
def test_a_kernel_of_a_framework(name: str, family: str) -> None:
    assert decode(name).family == family
