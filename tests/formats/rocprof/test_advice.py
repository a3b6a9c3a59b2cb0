"""A file of rocprofv3 that lacks what a command needs: advice is to ask rocprofv3 for it, not tools of NVIDIA's."""

import pytest
from tests.commands.test_command_line import run
from tests.rocprof_files import REAL, needs_real


@needs_real
def test_counters_that_are_not_there_are_asked_of_rocprofv3(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("counters", REAL, capsys=capsys)
    assert code == 3
    assert "rocprofv3 --pmc SQ_WAVES GRBM_GUI_ACTIVE" in err
    assert "ncu" not in err
