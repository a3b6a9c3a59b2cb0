"""What a command says of a file of rocprofv3 that lacks what it needs: what rocprofv3 is asked for, not NVIDIA's tools."""

import pytest
from tests.commands.test_command_line import run
from tests.rocprof_files import REAL, needs_real


@needs_real
def test_counters_that_are_not_there_are_asked_of_rocprofv3(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("counters", REAL, capsys=capsys)
    assert code == 3
    assert "rocprofv3 --pmc SQ_WAVES GRBM_GUI_ACTIVE" in err
    assert "ncu" not in err
