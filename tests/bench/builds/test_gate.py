"""What the gate says of candidates that are wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.bench.builds import samples
from tests.bench.builds.conftest import NORM, NORM_CASES

from inferometer.bench.builds import building
from inferometer.bench.builds.building import build_candidate
from inferometer.bench.builds.gate import BuildFinding, check_builds
from inferometer.bench.builds.record import ArchitectureBuild
from inferometer.bench.builds.result import Builds
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators.work import Product, Work

Built = Callable[[str], Builds]


def only(builds: Builds, severity: str) -> BuildFinding:
    (finding,) = (each for each in builds.findings if each.severity == severity)
    return finding


def test_spills_are_a_warning(built: Built) -> None:
    finding = next(each for each in built("spilling").findings if each.rule == "spills")
    assert finding.severity == "warning"
    assert finding.where.startswith("sm_90: gate_tiles(TILE_T=256, TILE_F=128, TILE_H=64, warps=4, stages=2)")
    assert "bytes of spill stores" in finding.found
    assert "255 registers used" in finding.found


def test_more_shared_memory_than_a_block_may_have_is_an_error(built: Built) -> None:
    finding = only(built("over_shared"), "error")
    (kernel,) = built("over_shared").kernels
    assert finding.rule == "unlaunchable"
    assert kernel.shared_bytes > 232_448
    assert finding.found == f"{kernel.shared_bytes:,} bytes of shared memory a block"
    assert finding.wanted.startswith("at most 232,448")
    assert kernel.occupancy is not None
    assert (kernel.occupancy.blocks, kernel.occupancy.limited_by) == (0, "shared memory")


def test_configurations_that_an_autotuner_leaves_out_are_only_told(built: Built) -> None:
    builds = built("autotuned")
    assert builds.passed
    assert [(each.severity, each.rule) for each in builds.findings] == [("info", "failed"), ("info", "unlaunchable")]
    assert [kernel.tuned for kernel in builds.kernels] == [True, True]
    (failed,) = builds.architectures[0].failed
    assert "power of 2" in failed.message
    assert failed.configuration == "TILE_T=48, TILE_F=64, TILE_H=32, num_warps=4, num_ctas=1, num_stages=3"


def test_products_without_matrix_instructions_are_an_error(built: Built) -> None:
    finding = only(built("without_matrix"), "error")
    assert (finding.rule, finding.where) == ("no-matrix", "sm_90: case 0")
    assert finding.found == "no matrix instruction in one_gate"
    assert finding.wanted.endswith("FLOPs a byte, in bf16")


def test_products_that_memory_limits_or_that_are_pytorchs_may_do_without(built: Built) -> None:
    kernels = built("without_matrix").kernels
    build = ArchitectureBuild("sm_90", kernels, (), None, "", "")
    narrow = Work(dtype="bf16", products=(Product(2 * 4096 * 4096),), read_bytes=2 * 4096 * 4096)
    assert [finding.severity for finding in check_builds([build], "gate", [narrow])] == ["warning"]
    wide = msgspec.structs.replace(narrow, read_bytes=0)
    assert [finding.severity for finding in check_builds([build], "gate", [wide])] == ["error"]
    left = replace(build, torch_products=("mm",))
    (finding,) = check_builds([left], "gate", [wide])
    assert (finding.severity, finding.found.endswith("; PyTorch's mm multiplies")) == ("warning", True)
    assert check_builds([build], "gate", [Work(vector_flops=10**9)]) == ()


def test_few_warps_at_once_are_a_warning(built: Built) -> None:
    (kernel,) = built("over_shared").kernels
    assert kernel.occupancy is not None
    few = replace(kernel.occupancy, blocks=1, warps=2)
    build = ArchitectureBuild("sm_90", (replace(kernel, dynamic_shared_bytes=1, occupancy=few),), (), None, "", "")
    assert [(each.severity, each.rule) for each in check_builds([build], "gate", [])] == [
        ("warning", "idle-schedulers")
    ]


def test_a_syntax_error_is_told_with_its_line(built: Built) -> None:
    (build,) = built("syntax_error").architectures
    assert build.error is not None
    assert build.error.startswith("syntax_error.py:3: SyntaxError: ")
    assert not built("syntax_error").passed


def test_a_class_in_the_published_form_is_built_as_the_function_is(built: Built) -> None:
    kernels = [built(name).kernels for name in ("published_form", "norm")]
    assert kernels[0]
    assert [kernel.kernel for kernel in kernels[0]] == [kernel.kernel for kernel in kernels[1]]
    assert [kernel.registers for kernel in kernels[0]] == [kernel.registers for kernel in kernels[1]]


def test_a_function_of_another_name_is_told(built: Built) -> None:
    (build,) = built("wrong_name").architectures
    assert build.error == "expected a function rms_norm or a class Model or ModelNew in it, found rmsnorm"


def test_a_candidate_without_kernels_has_nothing_to_build() -> None:
    (finding,) = check_builds([ArchitectureBuild("sm_90", (), (), None, "", "")], "rms_norm", [])
    assert (finding.severity, finding.rule) == ("error", "no-kernel")


def test_what_doesnt_compile_is_told_and_the_rest_is_built(built: Built) -> None:
    (build,) = built("raising").architectures
    assert [kernel.kernel for kernel in build.kernels] == ["copied"]
    (failed,) = build.failed
    assert (failed.kernel, failed.case) == ("broken", 0)
    assert "no_such_name is not defined" in failed.message
    assert "Traceback" not in failed.message
    assert build.error == "raising.py:15: RuntimeError: no\\x1b[31m further"


def test_a_candidate_that_hangs_is_stopped(built: Built) -> None:
    (build,) = built("hanging").architectures
    assert build.error == "stopped after 4 s"
    assert only(built("hanging"), "error").rule == "failed"


def test_a_crash_is_told_with_the_signal_and_the_kernel_and_what_was_built_is_kept(built: Built) -> None:
    (build,) = built("crashing").architectures
    assert build.error is not None
    assert build.error.startswith("ended by signal SIGABRT, while or after it compiled copied\n")
    assert "LLVM ERROR: out of patience" in build.error
    assert [kernel.kernel for kernel in build.kernels] == ["copied"]


def test_what_the_caller_gets_wrong_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "candidate.py"
    path.write_text(samples.WRONG_NAME, "utf-8")
    with pytest.raises(UnknownName, match="sm_91"):
        build_candidate(path, NORM, NORM_CASES, ["sm_91"])
    with pytest.raises(InputError, match="found nothing"):
        build_candidate(tmp_path / "none.py", NORM, NORM_CASES, ["sm_90"])
    with pytest.raises(UnknownName, match="rms_norms"):
        build_candidate(path, msgspec.structs.replace(NORM, name="rms_norms"), NORM_CASES, ["sm_90"])
    with pytest.raises(InputError, match=r"rms_norm: .*hidden_size"):
        build_candidate(path, NORM, [{"token_count": 3}], ["sm_90"])
    with pytest.raises(InputError, match="no shapes"):
        build_candidate(path, NORM, [], ["sm_90"])
    monkeypatch.setattr(building, "find_spec", lambda package: None)
    with pytest.raises(Unavailable, match="torch is not installed"):
        build_candidate(path, NORM, NORM_CASES, ["sm_90"])
