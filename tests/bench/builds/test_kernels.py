"""What the record of a compiled kernel says, on this machine without a GPU."""

from collections.abc import Callable

import pytest
from tests.bench.builds.conftest import ALL

from inferometer.bench.builds.record import KernelBuild
from inferometer.bench.builds.result import Builds
from inferometer.reports.views.view import facts_of, sections_of

Built = Callable[[str], Builds]


def only(builds: Builds, architecture: str) -> KernelBuild:
    (kernel,) = (each for each in builds.kernels if each.architecture == architecture)
    return kernel


@pytest.mark.parametrize(
    ("architecture", "matrix", "load"),
    [
        ("sm_80", "HMMA", "LDGSTS"),
        ("sm_90", "HGMMA", "LDGSTS"),
        ("sm_100", "UTCHMMA", "LDGSTS"),
        ("sm_120", "HMMA", "LDGSTS"),
        ("gfx942", "v_mfma_f32", "buffer_load"),
        ("gfx950", "v_mfma_f32", "buffer_load"),
    ],
)
def test_each_architecture_gets_its_own_matrix_instructions(
    built: Built, architecture: str, matrix: str, load: str
) -> None:
    kernel = only(built("matmul"), architecture)
    assert all(name.startswith(matrix) for name in kernel.matrix)
    assert sum(kernel.matrix.values()) >= 1
    assert kernel.loads[load] >= 1
    assert kernel.instructions > sum(kernel.matrix.values()) + sum(kernel.loads.values())
    assert kernel.registers is not None
    assert 32 <= kernel.registers <= 255
    assert (kernel.num_warps, kernel.num_stages, kernel.num_ctas) == (4, 3, 1)
    assert kernel.triton == built("matmul").architectures[0].triton
    assert not kernel.spills
    assert kernel.shared_bytes >= 2 * 2 * 64 * 32  # at least one stage of both tiles, in bf16
    assert kernel.occupancy is not None
    assert 0 < kernel.occupancy.share <= 1


def test_a_sound_candidate_passes_without_findings(built: Built) -> None:
    assert built("matmul").passed
    assert built("matmul").findings == ()
    assert built("norm").findings == ()


def test_arguments_are_specialised_as_in_a_launch(built: Built) -> None:
    wide, odd = built("norm").kernels
    assert wide.arguments == {
        "x": "*bf16:16", "weight": "*bf16:16", "out": "*bf16:16", "H": "i32:16", "eps": "fp32", "BLOCK": "=4096",
    }  # fmt: skip
    assert (odd.arguments["H"], odd.arguments["BLOCK"]) == ("i32", "=1024")


def test_a_kernel_is_recorded_once_with_the_cases_that_launched_it(built: Built) -> None:
    wide, odd = built("norm").kernels
    assert (wide.cases, wide.grid) == ((0, 1), (16,))
    assert (odd.cases, odd.grid) == ((2,), (3,))


def test_spills_are_counted_in_bytes_by_nvidia_and_in_registers_by_amd(built: Built) -> None:
    kernel = only(built("matmul"), "gfx942")
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes) == (None, None)
    assert (kernel.spilled_registers, kernel.spilled_scalar_registers) == (0, 0)
    assert kernel.scalar_registers is not None
    kernel = only(built("spilling"), "sm_90")
    assert kernel.registers == 255
    assert min(kernel.stack_bytes or 0, kernel.spill_store_bytes or 0, kernel.spill_load_bytes or 0) > 100
    assert kernel.spilled_registers is None
    assert kernel.loads["LDL"] >= 1


def test_a_wrapper_that_asks_for_a_gpu_sees_one(built: Built) -> None:
    builds = built("asks_for_a_gpu")
    assert builds.architectures[0].error is None
    assert {kernel.arguments["PROGRAMS"] for kernel in builds.kernels} == {"=132"}
    assert builds.architectures[0].torch_products == ("matmul",)
    assert built("matmul").architectures[0].torch_products == ()


def test_declared_kernels_are_built_without_a_call(built: Built) -> None:
    (kernel,) = built("declared").kernels
    assert (kernel.cases, kernel.grid, kernel.num_warps) == ((), None, 8)
    assert (kernel.arguments["x"], kernel.arguments["H"], kernel.arguments["F"]) == ("*fp16:16", "i32:16", "i32")
    assert built("declared").passed


def test_the_json_has_every_kernel_whole(built: Built) -> None:
    data = built("matmul").as_json()
    assert [each["architecture"] for each in data["architectures"]] == list(ALL)
    (kernel,) = data["architectures"][1]["kernels"]
    assert kernel["shared_bytes"] == kernel["static_shared_bytes"] + kernel["dynamic_shared_bytes"]
    assert kernel["occupancy"]["limited_by"] in {"registers", "shared memory"}
    assert set(kernel["matrix"]) == {"HGMMA"}


def test_the_tables_name_kernels_failures_and_findings(built: Built) -> None:
    kernels, *others = sections_of(built("matmul"))
    assert kernels.frame.height == len(ALL)
    assert others == []
    assert [section.title for section in sections_of(built("raising"))] == ["Kernels", "Failed", "Gate"]
    assert dict(facts_of(built("raising")))["Gate"] == "not passed: 2 errors"
