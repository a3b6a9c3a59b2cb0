"""Run by every Python below a recording, before the program: it waits for torch, and begins to record then.

Python's `site` imports it, since its folder leads `PYTHONPATH`. It may run in any version and any environment, so it
is plain old Python, loads nothing, and whatever goes wrong the program runs as it would have. It takes its folder off
`sys.path` and hands over to the `sitecustomize` that the environment has of its own. A Python started with -I, -E
or -S doesn't run it.
"""

import os
import sys

TYPE_CHECKING = False  # typing's own would have to be loaded
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib takes long to load
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120
_NEEDS = ("polars", "msgspec", "numpy", "isal")


def _watch() -> None:
    """Begin when torch has been imported. The watcher is a file of the package, which isn't to be imported yet."""
    names: dict[str, Any] = {"__name__": "inferometer.record.torch_watch"}
    try:
        with open(os.path.join(_PACKAGE, "record", "torch_watch.py"), encoding="utf-8") as source:  # noqa: PTH118, PTH123
            exec(compile(source.read(), source.name, "exec"), names)
        names["Watch"](_begin, _say).watch()
    except Exception as error:  # noqa: BLE001  # the program must run, whatever becomes of its recording
        _say("nothing of " + sys.executable + " was recorded: " + type(error).__name__ + ": " + str(error))


def _begin() -> None:
    """Record from now on, if this Python has what that takes."""
    try:
        lacking = _lacking()
        if lacking:
            _say(
                "the Python at " + sys.executable + " lacks " + lacking + ": only counters are recorded; there, run: "
                "python -m pip install inferometer"
            )
            return
        _load_package()
        from inferometer.record.workers.child import begin

        begin()
    except Exception as error:  # noqa: BLE001  # the program must run, whatever becomes of its recording
        _say("nothing of " + sys.executable + " was recorded: " + type(error).__name__ + ": " + str(error))


def _lacking() -> str:
    if sys.version_info < (3, 11):  # noqa: UP036  # it is another Python's that runs this
        return "version 3.11 or later of itself"
    from importlib.util import find_spec

    return ", ".join(name for name in _NEEDS if find_spec(name) is None)


def _load_package() -> None:
    """Import the package that started the recording, without making its neighbours importable."""
    if "inferometer" in sys.modules:
        return
    from importlib.util import module_from_spec, spec_from_file_location

    place = os.path.join(_PACKAGE, "__init__.py")  # noqa: PTH118
    spec = spec_from_file_location("inferometer", place, submodule_search_locations=[_PACKAGE])
    if spec is None or spec.loader is None:
        raise ImportError(place)
    module = module_from_spec(spec)
    sys.modules["inferometer"] = module
    spec.loader.exec_module(module)


def _say(line: str) -> None:
    """Leave a line for whoever started the recording."""
    try:
        import json

        folder = json.loads(os.environ["INFEROMETER_RECORD"])["folder"]
        with open(os.path.join(folder, str(os.getpid()) + ".python.txt"), "a") as notes:  # noqa: PTH118, PTH123
            notes.write(line + "\n")
    except Exception:  # noqa: BLE001
        pass


def _hand_over() -> None:
    """Run the environment's own `sitecustomize`, as if this one weren't there."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]  # noqa: PTH100
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


if __name__ == "sitecustomize":
    if "INFEROMETER_RECORD" in os.environ:
        _say("")
        _watch()
    _hand_over()
