"""Kernels that communicate, by their public names, and kernels that only sound so."""

import pytest

from inferometer.names import decode
from inferometer.names.communication import find_collective, read_collective

COMMUNICATION = [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
    ("ncclKernel_AllReduce_TREE_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"),
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
    ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymkDevWorkArgs4K)", "all_reduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
    ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "broadcast"),
    ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce"),
    ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "other"),
    ("void rcclGenericKernel<1, false>(ncclDevKernelArgs*)", "other"),
    ("mscclKernel_Sum_half_LL_Simple", "other"),
    ("void mscclpp::allreduce7<__half>(__half*)", "all_reduce"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)", "all_reduce"),
    ("_ZN4vllm26cross_device_reduce_2stageI13__nv_bfloat16Li4EEEvPNS_8RankDataE", "all_reduce"),
    ("void aiter::cross_device_reduce_1stage_naive<__hip_bfloat16, 8>(aiter::RankData*)", "all_reduce"),
    ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)", "reduce_scatter"),
    ("void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half, 8>>(half*)", "all_reduce"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8, true>(AllReduceParams)", "all_reduce"),
    ("void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(AllReduceParams)", "all_reduce"),
    ("void tensorrt_llm::kernels::lamport_style_one_shot_all_reduce_norm_kernel<half>(P)", "all_reduce"),
    (
        "void tensorrt_llm::kernels::ar_fusion::moe::moereduce_allreduce_fusion_kernel_oneshot_lamport<P>(P)",
        "all_reduce",
    ),
    ("void tensorrt_llm::kernels::moeAllReduce<half>(P)", "all_reduce"),
    (
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<A<1>, (B)4>(P<half>)",
        "all_reduce",
    ),
    ("void flashinfer::trtllm_mnnvl_allreduce::twoshot_allreduce_kernel<8, __nv_bfloat16>(P)", "all_reduce"),
    ("void c10d::symmetric_memory::(anonymous namespace)::multimem_all_reduce_kernel<float, 16>(float*)", "all_reduce"),
    ("void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)", "all_reduce"),
    ("two_shot_all_reduce_kernel", "all_reduce"),
    ("multimem_reduce_kernel", "reduce"),
    ("multimem_barrier_kernel", "other"),
    ("void fbgemm_gpu::one_shot_all_reduce<8>(int)", "all_reduce"),
    ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "all_to_all"),
    ("void deep_ep::internode::combine<8, __nv_bfloat16, 8>(int4*)", "all_to_all"),
    ("void deep_ep::internode_ll::dispatch<true, 10, 7168>(void*)", "all_to_all"),
    ("void deep_ep::intranode::notify_dispatch<8>(int const*)", "all_to_all"),
    ("void deep_ep::intranode::barrier<8>(int**, int)", "other"),
    ("void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(mori::moe::Args)", "all_to_all"),
    ("moeA2ADispatchKernel", "all_to_all"),
    ("void moeAlltoAllKernel<128>(P)", "all_to_all"),
    ("nvshmemi_proxy_barrier", "other"),
    ("void nvshmem_alltoall_kernel<int>(int*)", "all_to_all"),
    ("userbuffers_fp16_sum_inplace_gpu_mc_rw", "other"),
    ("kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", "send_recv"),
    ("void broadcast_on_stream_kernel<__nv_bfloat16>(int, __nv_bfloat16*, __nv_bfloat16 const*)", "broadcast"),
    ("void fcollect_on_stream_kernel<float>(int, float*, float const*)", "all_gather"),
    ("void rdxn_on_stream_kernel<float, (rdxn_ops)3>(int, float*, float const*)", "all_reduce"),
    ("c10d::nvshmem_extension::allToAllV(void*, void*, long*)", "all_to_all"),
    ("c10d::symmetric_memory::(anonymous namespace)::put_signal_kernel(unsigned int**, int)", "other"),
    ("void c10d::nvshmem_extension::tile_reduce_kernel<float>(float*)", "reduce"),
    ("void vllm::mnnvl_multimem_barrier_kernel<true, 4>(vllm::Signal*, vllm::Signal*, int)", "other"),
]
COMPUTE = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>(R)",
    "void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>(cublasSplitKParams<float>)",
    "void cub::DeviceReduceSingleTileKernel<cub::Policy, int*, int*>(int*, int*)",
    "void cub::CUB_200200_700_900_NS::DeviceReduceKernel<AllReducePolicy>(int)",
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
    "void at::native::index_elementwise_kernel<128, 4>(int)",
    "void flashinfer::PersistentVariableLengthMergeStatesKernel<8, 16, 8>(half*)",
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<MergeStates>(P)",
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64>>(flash::Flash_fwd_params)",
    "triton_poi_fused_add_all_reduce_wait_tensor_0",
    "triton_red_fused__to_copy_mean_0",
    "gemm_allreduce_kernel",
    "nvjet_tst_128x64_64x8_2x4_h_bz_TNN",
    "void c10d::(anonymous namespace)::checkForNaN<float>(float*, unsigned long)",
    "onnxruntime::cuda::VariadicElementWiseNoBroadcastInputBatchKernel<float>(float*)",
    "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
    "void blockAllReduceKernel<float>(float*)",
    "moe_align_block_size_kernel",
    "broadcast_kernel",
    "Cijk_Alik_Bljk_BBS_BH_MT128x128",
    "void f<AllReduce(int)>(allreduce)",
    "",
    ">>)))((<<",
]


@pytest.mark.parametrize(("name", "collective"), COMMUNICATION)
def test_kernels_that_communicate_are_known_by_name(name: str, collective: str) -> None:
    assert find_collective(name) == collective


@pytest.mark.parametrize("name", COMPUTE)
def test_kernels_that_only_sound_so_compute(name: str) -> None:
    assert find_collective(name) is None


@pytest.mark.parametrize(
    ("recorded", "collective"),
    [
        *(("allreduce", "all_reduce"), ("allreduce_coalesced", "all_reduce"), ("_allgather_base", "all_gather")),
        *(("all_gather", "all_gather"), ("allgather_into_tensor_coalesced", "all_gather")),
        *(("_reduce_scatter_base", "reduce_scatter"), ("reduce_scatter_tensor_coalesced", "reduce_scatter")),
        *(("all_to_all", "all_to_all"), ("all_to_allv", "all_to_all"), ("send", "send_recv"), ("recv", "send_recv")),
        *(("broadcast", "broadcast"), ("_broadcast_oop", "broadcast"), ("_reduce_oop", "reduce")),
        *(("barrier", "other"), ("gather", "other"), ("scatter", "other"), ("", "other")),
    ],
)
def test_what_pytorch_calls_a_collective_is_read(recorded: str, collective: str) -> None:
    assert read_collective(recorded) == collective


def test_a_type_of_c_is_one_word_of_the_short_name() -> None:
    name = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"
    assert decode(name).short_name == "nccl sendrecv ring simple sum int8"
    assert decode("ncclDevKernel_AllReduce_Sum_t(P)").short_name == "nccl allreduce sum t"
