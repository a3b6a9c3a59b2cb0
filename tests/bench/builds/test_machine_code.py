"""Logs and listings, trimmed from what Triton 3.7's tools print."""

from inferometer.bench.builds.machine_code import (
    Resources,
    count_amd,
    count_sass,
    read_amd_metadata,
    read_ptxas_log,
)

LOG = """\
ptxas-blackwell info    : 0 bytes gmem
ptxas-blackwell info    : Compiling entry function 'mm' for 'sm_100a'
ptxas-blackwell info    : Function properties for mm
    720 bytes stack frame, 1776 bytes spill stores, 1264 bytes spill loads
ptxas-blackwell info    : Used 255 registers, used 1 barriers, 720 bytes cumulative stack size, 16 bytes smem
ptxas-blackwell info    : Compile time = 40.816 ms
"""

SASS = """\
.text.mm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDGSTS.E.BYPASS.128 [R7], desc[UR8][R2.64] ;
        /*0020*/             @!UP0 UTMALDG.2D [UR4], [UR6] ;
        /*0030*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24, !UPT ;
        /*0040*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
        /*0050*/                   LDL.LU R3, [R1] ;
        /*0060*/                   LDGDEPBAR ;
        /*0070*/                   NOP ;
"""

ASSEMBLY = """\
mm:
	s_load_dwordx8 s[0:7], s[0:1], 0x0
	global_load_dwordx4 v[0:3], v4, s[2:3]
	buffer_load_dwordx4 v5, s[4:7], 0 offen lds
	ds_read_b64 v[8:9], v10
	ds_read2st64_b64 v[8:11], v10
	v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], 0
	; a comment with lds in it
    .agpr_count:     0
    .private_segment_fixed_size: 12
    .group_segment_fixed_size: 0
    .sgpr_count:     33
    .sgpr_spill_count: 0
    .vgpr_count:     140
    .vgpr_spill_count: 2
"""


def test_ptxas_tells_registers_stack_spills_and_static_shared_memory() -> None:
    assert read_ptxas_log(LOG) == Resources(
        registers=255, stack_bytes=720, spill_store_bytes=1776, spill_load_bytes=1264, static_shared_bytes=16
    )
    assert read_ptxas_log("") == Resources()


def test_sass_is_counted_by_name_without_modifiers_and_predicates() -> None:
    found = count_sass(SASS)
    assert (found.total, found.matrix) == (7, {"HGMMA": 2})
    assert found.loads == {"LDGSTS": 1, "LDL": 1, "UTMALDG": 1}


def test_amd_assembly_tells_resources_and_instructions() -> None:
    assert read_amd_metadata(ASSEMBLY) == Resources(
        registers=140, scalar_registers=33, stack_bytes=12, spilled_registers=2, spilled_scalar_registers=0,
        static_shared_bytes=0,
    )  # fmt: skip
    found = count_amd(ASSEMBLY)
    assert (found.total, found.matrix) == (6, {"v_mfma_f32_32x32x8_bf16": 1})
    assert found.loads == {"buffer_load lds": 1, "ds_read": 2, "global_load": 1}


def test_what_gfx950_has_beyond_gfx942_is_counted() -> None:
    found = count_amd(
        "\tglobal_load_lds_dwordx4 v[0:1], off\n"
        "\tds_read_b64_tr_b16 v[0:1], v2\n"
        "\tv_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], v[4:7], 0\n"
        "\tv_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[0:7], v[8:15], 0, v16, v17\n"
    )
    assert found.loads == {"ds_read": 1, "global_load lds": 1}
    assert found.matrix == {"v_mfma_f32_32x32x16_bf16": 1, "v_mfma_scale_f32_16x16x128_f8f6f4": 1}
