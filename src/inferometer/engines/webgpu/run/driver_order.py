"""Two LLVMs in one process: Triton's own must be there before a driver of Mesa brings another.

Mesa's CPU driver (lavapipe) loads the system's libLLVM when adapters are listed. Triton has another LLVM inside of its
library. Their C++ objects that are unique in a process then mix, and importing Triton afterwards ends the process with
a segmentation fault (seen with libLLVM 15 and Triton 3.7). The other way round both work.
"""

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path


def load_triton_first() -> None:
    """Load Triton's library, without Triton, where it is installed and not loaded yet; it takes 30 ms."""
    if sys.platform != "linux" or "triton" in sys.modules:
        return
    spec = find_spec("triton")
    library = None if spec is None or spec.origin is None else Path(spec.origin).parent / "_C" / "libtriton.so"
    if library is not None and library.is_file():
        ctypes.CDLL(str(library))
