"""Kernels of communication libraries: known by the names that their sources give them, in both formats."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from simcore.kineto.libraries import KernelNames, collective_in_name, identifier_of, kernel_kind
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_json
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.command_line.running import wltui_here
from tests.kineto.test_bad_input import event, opened

CASES = Path(__file__).parent / "cases"
_SYMMETRIC = "void (anonymous namespace)::"
_FLASHINFER = "void flashinfer::"
_TENSORRT = "void tensorrt_llm::kernels::"
_USERBUFFERS = "void userbuffers_fp16_sum_inplace_gpu_"

# Name as a profiler shows it -> the collective.
KNOWN = {
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "allreduce",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "allgather",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reducescatter",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "broadcast",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "sendrecv",
    "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)": "allreduce",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)": "allreduce",
    "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)": "allreduce",
    "ncclSymkDevKernel_AllGather_LLMC(ncclSymkDevWorkArgs4K)": "allgather",
    "ncclSymkDevKernel_ReduceScatter_LD_sum_f32(ncclSymkDevWorkArgs4K)": "reducescatter",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "ncclDevKernel_Generic",
    "ncclDevKernelDebug_Generic(ncclDevComm*, channelMasks, ncclWork*)": "ncclDevKernelDebug_Generic",
    "rccl_main_kernel(ncclDevComm*, unsigned long, ncclWork*)": "rccl_main_kernel",
    "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*)": "mscclKernel_Sum_half_Simple_false",
    f"{_SYMMETRIC}multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)": "allreduce",
    f"{_SYMMETRIC}multimem_one_shot_all_reduce_kernel<float, 16>(float*, float*)": "allreduce",
    f"{_SYMMETRIC}multimem_all_gather_kernel<16>(char*, char*, unsigned long)": "allgather",
    f"{_SYMMETRIC}one_shot_all_reduce_kernel<float, 16, 8>(float**, float*)": "allreduce",
    f"{_SYMMETRIC}two_shot_all_reduce_kernel<float, 16, 8, false, false>(float**)": "allreduce",
    f"{_SYMMETRIC}two_shot_all_reduce_kernel<float, 16, 8, true, false>(float**)": "reducescatter",
    f"{_SYMMETRIC}two_shot_all_reduce_kernel<float, (int)16, (int)8, (bool)1, (bool)0>(float**)":
        "reducescatter",
    f"{_SYMMETRIC}two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>(c10::BFloat16**)": "allreduce",
    "void c10d::intra_node_comm::oneShotAllReduceKernel<8u, false>(c10::BFloat16*)": "allreduce",
    "void c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)": "barrier",
    "c10d::nvshmem_extension::allToAllV(void*, void*, long*, unsigned long, int, int)": "alltoall",
    "c10d::nvshmem_extension::exchangeSplitAndOffset(long*, int, int)": "alltoall",
    "void alltoall_on_stream_kernel<char, (threadgroup_t)2>(int, char*, char const*)": "alltoall",
    "void broadcast_on_stream_kernel<char, (threadgroup_t)2>(int, char*, char const*)": "broadcast",
    "void fcollect_on_stream_kernel<char, (threadgroup_t)2>(int, char*, char const*)": "allgather",
    "void rdxn_on_stream_kernel<float, (rdxn_ops)3, (threadgroup_t)2>(int, float*)": "allreduce",
    "void reducescatter_on_stream_kernel<float, (rdxn_ops)3>(int, float*)": "reducescatter",
    "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)2>(int, int)": "barrier",
    "void deep_ep::internode_ll::dispatch<(bool)1, (bool)1, (int)6144>(void *, void *, int *)": "alltoall",
    "void deep_ep::internode_ll::combine<(bool)0, (int)6144, (int)11>(void *)": "alltoall",
    "void deep_ep::legacy::intranode::dispatch<8, 768, 8192>(int4*, float*)": "alltoall",
    "void deep_ep::legacy::internode::notify_dispatch<false, 2>(int const*, int*)": "alltoall",
    "void deep_ep::intranode::cached_notify_combine<8>(void**, int*, int)": "alltoall",
    "void deep_ep::intranode::barrier<8>(int**, int)": "barrier",
    "void deep_ep::elastic::dispatch_impl<512>(void*)": "alltoall",
    "void deep_ep::elastic::pp_send_impl<8>(ncclDevComm)": "send",
    "void deep_ep::elastic::pp_recv_impl<8>(ncclDevComm)": "recv",
    "ep::intranode::dispatch": "alltoall",
    f"{_FLASHINFER}trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>(int)": "allreduce",
    f"{_FLASHINFER}trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<8>(int)": "allreduce",
    f"{_FLASHINFER}trtllm_moe_allreduce_fusion::moereduce_allreduce_fusion_kernel_oneshot_lamport<4>(int)":
        "allreduce",
    f"{_FLASHINFER}trtllm_allreduce::lamport_style_one_shot_all_reduce_norm_kernel<1, half>(int)":
        "allreduce",
    f"{_FLASHINFER}trtllm_mnnvl_allreduce::twoshotAllreduceKernel<8, float>(int)": "allreduce",
    f"{_FLASHINFER}trtllm_alltoall::moeAllToAllKernel<8>(int)": "alltoall",
    f"{_FLASHINFER}mixed_comm::reducescatter_kernel<half>(int)": "reducescatter",
    f"{_FLASHINFER}comm::pcie_ipc::ipc_tp2_remote_push_kernel<half>(int)": "allreduce",
    f"{_FLASHINFER}comm::ulysses::ulysses_a2a_kernel<half, 8>(half const*)": "alltoall",
    f"{_TENSORRT}oneShotAllReduceKernel<half, 8, true>(AllReduceParams)": "allreduce",
    f"{_TENSORRT}twoShotAllReduceKernel<half, 8, true, false>(AllReduceParams)": "allreduce",
    f"{_TENSORRT}ar_fusion::allreduce_fusion_kernel_oneshot_lamport<half, 8>(int)": "allreduce",
    f"{_TENSORRT}mnnvl::oneshotAllreduceFusionKernel<8, half, true>(half*)": "allreduce",
    f"{_TENSORRT}moe_comm::moeA2ADispatchKernel<BlockPolicy, 8>(int const*)": "alltoall",
    f"{_TENSORRT}moe_comm::moeA2ACombineKernel<half, BlockPolicy, 8>(int)": "alltoall",
    f"{_TENSORRT}helixAllToAllKernel<true>(HelixAllToAllParams)": "alltoall",
    f"{_USERBUFFERS}rw<8>(int, int, int)": "allreduce",
    f"{_USERBUFFERS}rr_rs<8>(int, int, int)": "reducescatter",
    f"{_USERBUFFERS}rr_rs_oop_stride_multiatomic<8>(int, int)": "reducescatter",
    f"{_USERBUFFERS}mc_rs_oop<8>(int, int)": "reducescatter",
    f"{_USERBUFFERS}rw_ag<8>(int, int, int)": "allgather",
    f"{_USERBUFFERS}mc_ag<8>(int, int, int)": "allgather",
    "kuserbuffers_pushsend(int*, int*, int4*, int4*, int)": "send",
    "kuserbuffers_pushrecv(int, int, int*, int*)": "recv",
    "kuserbuffers_pushsendrecv_atomic(int*, int*)": "sendrecv",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "allreduce",
    "void sglang::cross_device_reduce_2stage<half, 8>(sglang::RankData*)": "allreduce",
    "void aiter::cross_device_reduce_2stage<std::bfloat16_t, 8, false>(aiter::RankData*)": "allreduce",
    "void aiter::reduce_scatter_cross_device_store<std::bfloat16_t, 8>(aiter::RankData*)": "reducescatter",
    "_ZN5aiter33reduce_scatter_cross_device_storeIDF16bLi8EEEvPNS_8RankDataE": "reducescatter",
    "void aiter::allreduce_fusion_kernel_1stage<std::bfloat16_t, 8>(aiter::RankData*)": "allreduce",
    "void aiter::allgather_lastdim<std::bfloat16_t, 8>(aiter::RankData*)": "allgather",
    "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>, half>(half const*)":
        "allreduce",
    "void mscclpp::collective::allreduceRsAg<half>(half*)": "allreduce",
    "allgatherFullmesh2<false>(void*, mscclpp::DeviceHandle<mscclpp::MemoryChannel>*)": "allgather",
    "oneccl_allreduce_pcie<sycl::half>": "allreduce",
    "oneccl_allgatherv_pcie<sycl::half>": "allgather",
    "Allreduce_small_kernel<float, 1>": "allreduce",
    "ReduceScatterMediumKernel_GlobalSync<float>": "reducescatter",
    "hcom_allReduce__606_0_1": "allreduce",
    "hcom_allGather__318_0_1": "allgather",
    "hcom_reduceScatter__456_0_1": "reducescatter",
    "hcom_reduceScatter_AicpuKernel_503_490_1": "reducescatter",
    "hcom_broadcast__1_2_1": "broadcast",
    "hcom_alltoallv__1_2_1": "alltoall",
    "hcom_send__101_0_1": "send",
    "hcom_receive__101_0_1": "recv",
    "hcom_batchSendRecv__128_4_1": "sendrecv",
    "MoeDistributeDispatch_0123456789abcdef_7": "alltoall",
    "gloo:all_reduce": "allreduce",
}  # fmt: skip
# Of the same libraries, but each in the memory of its own device.
LOCAL = (
    "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)",
    "void deep_ep::elastic::combine_reduce_epilogue_impl<512>(nv_bfloat16*)",
    "tensorrt_llm::kernels::ar_fusion::lamport_initialize_kernel(float*, int)",
    "void flashinfer::trtllm_allreduce::rms_norm_kernel<half>(int)",
    "flashinfer::trtllm_alltoall::computeSendRecvRankCountKernel(int)",
)
COMPUTES = (
    "gemm", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)", "BroadcastTo",
    "void broadcast_add_kernel<float>(float*)", "void scatter_reduce_kernel<float>(float*)",
    "small_reduce_kernel", "index_gather_all", "void softmax_blockAllReduce<float>(float*)",
    "void layer_norm_warp_all_reduce<float>(float*)", "triton_poi_fused_all_reduce_wait_tensor_0",
    "triton_red_fused__to_copy_all_gather_into_tensor_mean_3", "void moe::dispatch_tokens<8>(int)",
    "splitKreduce_kernel", "void combine_kernel<float>(float*)", "fused_dispatch_scatter",
)  # fmt: skip
UNKNOWN = {
    "void mine::custom_allreduce_kernel<float>(float*)": "allreduce",
    "all_gather_kernel": "allgather",
    "void (anonymous namespace)::RingReduceScatter<c10::BFloat16>(int)": "reducescatter",
    "ring_all_to_all_kernel(int*)": "alltoall",
    "inkling_two_shot_all_reduce(void* const*, unsigned int)": "allreduce",
    "void collective::allreduce::run<8>(int)": "allreduce",
    "p2p_broadcast_kernel": "broadcast",
}


def test_a_kernel_of_a_library_is_known_by_its_name() -> None:
    names = KernelNames()
    assert [name for name in KNOWN if not names.communicates(name)] == []
    assert {name: kernel_kind(name) for name in KNOWN} == KNOWN


def test_what_computes_neither_communicates_nor_says_so() -> None:
    names = KernelNames()
    others = (*LOCAL, *COMPUTES)
    assert [name for name in others if names.communicates(name) or collective_in_name(name)] == []


def figures(run: MeasuredRun) -> tuple[int, int]:
    """(compute, exposed) of the only rank, ns."""
    (one,) = run_json(run_recording(run, Parameters()))["classes"]
    return sum(one["compute_ns"].values()), one["exposed_ns"].get("comm", 0)


def notes(run: MeasuredRun, code: str) -> list[str]:
    """The messages with this code."""
    return [one.message for one in run.diagnostics if one.code == code]


def both(name: str) -> list[dict[str, Any]]:
    """500 us of compute, then 300 us of a kernel of this name."""
    return [event(ts=0, dur=500), event(name=name, ts=500, dur=300)]


@pytest.mark.parametrize("case", ["symm_mem_multimem", "flashinfer_allreduce"])
def test_the_case_has_exposed_communication(case: str) -> None:
    run = open_input(str(CASES / f"{case}.json"))
    assert isinstance(run, MeasuredRun)
    compute, exposed = figures(run)
    assert exposed == 300_000
    assert round(100 * compute / run.step_time_ns, 1) == 55.6


def test_all_known_kernels_are_communication_in_a_trace(tmp_path: Path) -> None:
    events = [event(ts=0, dur=500)]
    events += [event(name=name, ts=1000 + 100 * at, dur=50) for at, name in enumerate(KNOWN)]
    run = opened(tmp_path, events)
    assert figures(run) == (500_000, 50_000 * len(KNOWN))
    device = run.ranks[0].device
    assert device is not None
    assert [told.operation for told in device.collectives.values()] == list(KNOWN.values())
    assert not notes(run, "collective-by-name")


def export(path: Path, names: list[tuple[str, str]]) -> Path:
    """An export of Nsight: a gemm of 500 ns, then 300 ns of each kernel. names: short, with namespaces."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table CUPTI_ACTIVITY_KIND_KERNEL "
            "(start, end, deviceId, streamId, shortName, demangledName)"
        )
        connection.execute("create table StringIds (id, value)")
        for at, pair in enumerate([("gemm", "gemm"), *names]):
            texts = [(2 * at, pair[0]), (2 * at + 1, pair[1])]
            connection.executemany("insert into StringIds values (?, ?)", texts)
            start = 0 if at == 0 else 200 + 300 * at
            row = (start, start + (300 if at else 500), 0, 7, 2 * at, 2 * at + 1)
            connection.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?, ?)", row)
    connection.close()
    return path


def short(name: str) -> str:
    """A kernel's name as Nsight's `shortName` has it."""
    return identifier_of(name).rpartition("::")[2]


def test_the_same_are_known_in_an_export_of_nsight_by_their_full_names(tmp_path: Path) -> None:
    run = open_input(str(export(tmp_path / "a.sqlite", [(short(name), name) for name in KNOWN])))
    assert isinstance(run, MeasuredRun)
    device = run.ranks[0].device
    assert device is not None
    assert [told.operation for told in device.collectives.values()] == list(KNOWN.values())
    assert figures(run) == (500, 300 * len(KNOWN))
    # They are shown by the short ones.
    assert run.ranks[0].ops.name[1:] == [short(name) for name in KNOWN]


@pytest.mark.parametrize("kind", ["kineto", "nsight"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_a_name_says_and_nobody_knows_is_a_note_whose_option_tells_it(
    tmp_path: Path, name: str, kind: str
) -> None:
    if kind == "kineto":
        path = tmp_path / "a.json"
        path.write_text(json.dumps({"traceEvents": both(name)}))
    else:
        path = export(tmp_path / "a.sqlite", [(short(name), name)])
    unit = 1000 if kind == "kineto" else 1
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    assert figures(run) == (800 * unit, 0)
    (message,) = notes(run, "collective-by-name")
    option = shlex.split(message[message.index("--comm-names") :])[:2]
    again = open_input(str(path), OpeningOptions(comm_names=option[1]))
    assert isinstance(again, MeasuredRun)
    assert figures(again) == (500 * unit, 300 * unit)
    assert not notes(again, "collective-by-name")
    device = again.ranks[0].device
    assert device is not None
    assert device.collectives[1].operation == UNKNOWN[name]


def test_one_note_has_all_that_are_most_frequent_and_counts_the_rest(tmp_path: Path) -> None:
    names = [f"my{letter * 3}_all_reduce_kernel" for letter in "abcdef"]
    events = [event(name=name, ts=1000 * at, dur=100) for at, name in enumerate(names)]
    (message,) = notes(opened(tmp_path, events), "collective-by-name")
    option = shlex.split(message[message.index("--comm-names") :])[1]
    assert sum(re.search(option, name) is not None for name in names) == 4
    assert " and 2 more" in message


def test_the_option_is_what_a_command_takes_as_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": both("void x::my all_reduce$kernel'1(int)")}))
    said = " ".join(wltui_here("report", str(path)).stdout.split())
    option = shlex.split(said[said.index("--comm-names") : said.index(" counts them as")])
    done = wltui_here("report", str(path), *option, "--json")
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["classes"]
    assert one["exposed_ns"]["comm"] == 300_000


def test_metadata_or_an_annotation_make_it_no_question(tmp_path: Path) -> None:
    args = {"stream": 7, "Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float"}
    run = opened(tmp_path, [event(ts=0, dur=500), event(name="my_all_reduce", ts=500, dur=300, args=args)])
    assert figures(run) == (500_000, 300_000)
    assert not notes(run, "collective-by-name")


def test_a_pattern_of_ones_own_may_have_flags(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": both("MINE_k")}))
    run = open_input(str(path), OpeningOptions(comm_names="(?i)mine_"))
    assert isinstance(run, MeasuredRun)
    assert figures(run) == (500_000, 300_000)
