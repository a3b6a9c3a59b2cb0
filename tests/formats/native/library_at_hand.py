"""Whether the library in C++ is there, for tests of it."""

import pytest

from inferometer.formats.native.library import find_library

needs_library = pytest.mark.skipif(find_library() is None, reason="the library in C++ wasn't built")
