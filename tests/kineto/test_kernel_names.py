"""Names of kernels as they are shown: what tells one from the others comes first, and survives a cut."""

from __future__ import annotations

import pytest

from simcore.kernel_names import display_name, distinct_names, short_name, without_library

_NATIVE = "void at::native::"
_CODE = "(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gemm", "gemm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        (
            f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda{_CODE}, int>(int)",
            "rsqrt_kernel_cuda (vectorized)",
        ),
        (
            f"{_NATIVE}vectorized_elementwise_kernel<4, at::(anonymous namespace)::silu_kernel{_CODE}>(int)",
            "silu_kernel (vectorized)",
        ),
        (
            f"{_NATIVE}elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
            "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > > >(int)",
            "MulFunctor (elementwise)",
        ),
        (
            f"{_NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::MeanOps<float>, 4> >(int)",
            "MeanOps (reduce)",
        ),
        # A wrapper around nothing that has a name.
        (f"{_NATIVE}vectorized_elementwise_kernel<4, 2>(int)", "vectorized_elementwise_kernel"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt::Params)",
            "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
        ),
        ("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0 (evaluate)"),
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "AccumulateGrad (evaluate)"),
        ("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>", "SplitLookupFunction_Dense_Op"),
        (
            "autograd::engine::evaluate_function: torch::autograd::CppNode<SplitLookupFunction_Dense_Op>",
            "SplitLookupFunction_Dense_Op (evaluate)",
        ),
        ("autograd::engine::evaluate_function: ", "autograd::engine::evaluate_function: "),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 7>(P<int>)", "gemvx::kernel"),
        ("std::enable_if<(a<b>::value), void>::type foo::bar(int)", "bar"),
    ],
)
def test_a_name_begins_with_what_tells_it_from_others(name: str, shown: str) -> None:
    assert display_name(name) == shown


def test_a_name_that_is_too_long_keeps_its_end() -> None:
    kinds = [f"split_embedding_backward_codegen_dense_unweighted_kernel_{end}" for end in ("cta", "warp")]
    shown = [short_name(name, 31) for name in kinds]
    assert shown == ["split_embeddin...ted_kernel_cta", "split_embeddin...ed_kernel_warp"]
    assert short_name("gemm", 31) == "gemm"


def test_a_collective_that_is_too_long_loses_the_prefix_of_its_library_first() -> None:
    whole = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long)"
    assert short_name(whole, 42) == "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"
    assert short_name(whole, 40) == "SendRecv_RING_SIMPLE_Sum_int8_t"
    assert short_name(whole, 26) == "SendRecv_RIN..._Sum_int8_t"
    assert short_name("ncclDevKernel_AllGather_RING_LL", 26) == "AllGather_RING_LL"
    # What is no collective of a library keeps how it begins.
    assert short_name("ncclKernelless_function_of_mine", 26).startswith("ncclKernelle")


def test_names_displayed_alike_are_followed_by_the_words_in_which_they_differ() -> None:
    sizes = [f"void bn_kernel<float, {size}, {same}>(x)" for size, same in ((128, 1), (32, 1), (128, 2))]
    assert list(distinct_names([*sizes, "gemm"]).values()) == [
        "bn_kernel 128 1", "bn_kernel 32 1", "bn_kernel 128 2", "gemm",
    ]  # fmt: skip
    kinds = [f"void at::native::reduce_kernel<at::MeanOps<{kind}>>(x)" for kind in ("float", "c10::Half")]
    assert list(distinct_names(kinds).values()) == ["MeanOps (reduce) float", "MeanOps (reduce) Half"]


def test_the_prefix_of_a_library_is_cut_for_all_or_for_none() -> None:
    texts = {"a": "ncclDevKernel_SendRecv", "b": "ncclKernel_AllReduce_RING", "c": "gemm"}
    assert without_library(texts) == {"a": "SendRecv", "b": "AllReduce_RING", "c": "gemm"}
    texts["d"] = "ncclKernel_SendRecv"
    assert without_library(texts) == texts


def test_a_hostile_name_is_cut_and_made_safe() -> None:
    for name in ("\x1b[2J" * 40, "void f<" * 2000, "autograd::engine::evaluate_function: \x1b[2J\n"):
        shown = short_name(name, 31)
        assert len(shown) <= 31
        assert shown.isprintable()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "enumerate(DataLoader)"),
        ("enumerate(DataPipe)#Mapper", "enumerate(DataPipe)#Mapper"),
        ("/usr/lib/torch/utils/data/dataloader.py(1330): _next_data", "dataloader.py(1330): _next_data"),
        ("/usr/lib/logging/__init__.py(1477): info", "logging/__init__.py(1477): info"),
        ("train.py(7): <module>", "train.py(7): <module>"),
        (
            "<built-in method poll of select.poll object at 0x7f12ab>",
            "<built-in method poll of select.poll object>",
        ),
        ("<built-in function linear>", "<built-in function linear>"),
        ("cudaStreamSynchronize", "cudaStreamSynchronize"),
    ],
)
def test_calls_of_a_host_keep_what_tells_them_apart(name: str, shown: str) -> None:
    assert display_name(name) == shown
