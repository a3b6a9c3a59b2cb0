"""Mangled names in readable form, and everything else as it is."""

import pytest

from inferometer.names.demangle import demangle


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_Z6kernelPfi", "kernel(float*, int)"),
        ("_ZN2at6native4copyIfEEvPT_", "void at::native::copy<float>(float*)"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("void at::native::copy<float>(float*)", "void at::native::copy<float>(float*)"),
        ("_Zebra", "_Zebra"),
        ("_Z", "_Z"),
        ("", ""),
        ("_Z" + "N" * 10_000, "_Z" + "N" * 10_000),
        ("_ZN" + "1a" * 5_000, "_ZN" + "1a" * 5_000),
        ("_Zé😀\0", "_Zé😀\0"),
    ],
)
def test_a_name_is_demangled_where_it_is_mangled(name: str, readable: str) -> None:
    assert demangle(name) == readable
