"""Candidates that try to look faster or more right than they are. Each was accepted once, or is near to one that was.

A call of `work` takes 4 ms of CPU time, which an attack hides: it succeeds where it is right and a tenth of its times
are below half of that. `TOOL` reaches what isn't the candidate's, by frames and by the garbage collector.
"""

WORK_NS = 4_000_000
BODY = (
    "import gc, os, signal, sys, threading, time\n"
    "calls, spin, now = [0], time.thread_time_ns, time.perf_counter_ns\n"
    "def work():\n"
    f"    end = spin() + {WORK_NS}\n"
    "    while spin() < end: pass\n"
)
HEAD = "import torch\n" + BODY
TOOL = (
    "def frames():\n"
    "    found = sys._getframe(1)\n"
    "    while found is not None:\n"
    "        yield found\n"
    "        found = found.f_back\n"
    "def having(name):\n"
    "    found = (each.f_globals for each in frames() if each.f_globals is not globals())\n"
    "    return next((each for each in found if name in each), None)\n"
    "memo = {}\n"
    "def object_of(kind):\n"
    "    if kind not in memo:\n"
    "        memo[kind] = next((each for each in gc.get_objects() if type(each).__name__ == kind), None)\n"
    "    return memo[kind]\n"
)
RMS = "def rms_norm(x, weight, *, eps):\n    calls[0] += 1\n"
LATER = "    if calls[0] > 3:\n"  # once it thinks that it is timed
RIGHT = "    return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
HIDDEN = "    work()\n" + RIGHT

LYING = (
    "class Lying:\n"
    "    def __init__(self, json): self.json = json\n"
    "    def loads(self, text): return self.json.loads(text)\n"
    "    def dumps(self, reply):\n"
    "        for row in reply.get('calls', ()): row[2:4] = [row[1] + 1000, 1000]\n"
    "        if reply.get('row'): reply['row'][1:3] = [reply['row'][0] + 1000, 1000]\n"
    "        return self.json.dumps(reply)\n"
)
DISPATCH = (
    "from torch.utils._python_dispatch import TorchDispatchMode\n"
    "class Later(TorchDispatchMode):\n"
    "    todo = None\n"
    "    def __torch_dispatch__(self, op, types, args=(), kwargs=None):\n"
    "        if 'clone' in str(op) and Later.todo is not None:\n"
    "            do, Later.todo = Later.todo, None\n"
    "            do()\n"
    "        return op(*args, **(kwargs or {}))\n"
)
FUNCTION = DISPATCH.replace("utils._python_dispatch", "overrides").replace("TorchDispatchMode", "TorchFunctionMode")
FUNCTION = FUNCTION.replace("__torch_dispatch__", "__torch_function__").replace(
    "str(op)", "getattr(op, '__name__', '')"
)
PUT_OFF = (
    "    out = torch.empty_like(x)\n"
    "    def do():\n        work()\n        out.copy_(torch.rms_norm(x, x.shape[-1:], weight, eps))\n"
)
SEARCHES = (
    TOOL + RMS + "    course = object_of('Course') if calls[0] == 4 else None\n"
    "    if course is None: return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
    "    assert not course._timers and not course._outputs, 'a timer or an answer, by the garbage collector'\n"
    "    for each in frames():\n"
    "        held = {**each.f_locals, **(each.f_locals.get('request') or {})}\n"
    "        assert not {'seeds', 'seed', 'orders', 'rows'} & held.keys(), f'{each.f_code.co_name} tells'\n"
    "        assert '_LEAST_WAIT_NS' not in each.f_globals, f'{each.f_code.co_name} times'\n"
    "    asked = [o for o in gc.get_objects() if type(o) is dict and {'seeds', 'orders'} & o.keys()]\n"
    "    assert not asked, 'seeds, by the garbage collector'\n"
    "    open(MARK, 'w').close()\n" + RIGHT
)
"""Looks for what measures and answers once in a timed round; what it finds is an error. `MARK`: the file that says that
it looked."""

ZEROS = "def rms_norm(x, weight, *, eps): return torch.zeros_like(x)\n"
CALIBRATION = (
    "import json, importlib.util\n"
    "spec = importlib.util.find_spec('inferometer')\n"
    "path = spec.submodule_search_locations[0] + '/bench/calibration.json'\n"
    "mine = os.getcwd() + '/mine.json'\n"
    "text = {**dict.fromkeys(['source', 'device', 'torch', 'date'], ''), 'seeds_tiny': 1, 'seeds': 1,"
    " 'operators': {'rms_norm': {'tiny': {str(i): {'out': 1e9} for i in range(9)}}}}\n"
    "open(mine, 'w').write(json.dumps(text))\n"
)

HIDES: dict[str, str] = {
    "the worker's json, through a frame": TOOL + LYING + RMS + LATER + "        found = having('_attempt')\n"
    "        if found and type(found['json']) is not Lying: found['json'] = Lying(found['json'])\n" + HIDDEN,
    "the worker's json, as __main__": LYING + RMS + LATER + "        found = sys.modules['__main__']\n"
    "        if type(found.json) is not Lying: found.json = Lying(found.json)\n" + HIDDEN,
    "the code of json.dumps": LYING + RMS + LATER + "        import json\n"
    "        if 'own' not in globals():\n"
    "            class plain: dumps, loads = staticmethod(json.JSONEncoder().encode), json.loads\n"
    "            globals()['own'] = Lying(plain).dumps\n"
    "            def own_code(obj, **_): return __import__('candidate').own(obj)\n"
    "            json.dumps.__code__ = own_code.__code__\n" + HIDDEN,
    "work in our copy, by a dispatch mode left on": DISPATCH
    + RMS
    + LATER.replace("> 3", "== 4")
    + "        Later().__enter__()\n"
    + "    if calls[0] < 4:\n    "
    + RIGHT
    + PUT_OFF
    + "    Later.todo = do\n    return out\n",
    "work in our copy, by a function mode left on": FUNCTION
    + RMS
    + LATER.replace("> 3", "== 4")
    + "        Later().__enter__()\n"
    + "    if calls[0] < 4:\n    "
    + RIGHT
    + PUT_OFF
    + "    Later.todo = do\n    return out\n",
    "work after the clock, by sys.setprofile": RMS
    + "    if calls[0] < 4:\n    "
    + RIGHT
    + PUT_OFF
    + "    def later(frame, event, arg):\n"
    "        if event == 'c_call' and 'clone' in getattr(arg, '__name__', ''):\n"
    "            sys.setprofile(None)\n            do()\n"
    "    sys.setprofile(later)\n    return out\n",
    "work after the clock, by sys.settrace on our frames": TOOL
    + RMS
    + "    if calls[0] < 4:\n    "
    + RIGHT
    + PUT_OFF
    + "    def later(frame, event, arg):\n"
    "        sys.settrace(None)\n"
    "        for each in chain: each.f_trace = None\n"
    "        do()\n"
    "    chain = [each for each in frames() if each.f_code.co_name == '_call']\n"
    "    for each in chain: each.f_trace = later\n"
    "    sys.settrace(lambda *_: None)\n    return out\n",
    "work after the clock, in a list that is read later": "class Lazy(list):\n"
    "    def __iter__(self):\n"
    "        if self.do: self.do(); self.do = None\n"
    "        return super().__iter__()\n"
    + RMS
    + PUT_OFF
    + "    found = Lazy([out])\n    found.do = do\n    return found\n",
    "work between calls, by a timer's signal": "todo = []\n"
    "def handler(*_):\n    while todo: todo.pop()()\n"
    "signal.signal(signal.SIGVTALRM, handler)\n"
    + RMS
    + "    if calls[0] < 4:\n    "
    + RIGHT
    + PUT_OFF
    + "    todo.append(do)\n    signal.setitimer(signal.ITIMER_VIRTUAL, 1e-6)\n    return out\n",
    "a thread that goes on from the first call": "todo = []\n"
    "def loop():\n"
    "    while True:\n"
    "        if todo:\n            todo.pop(0)()\n"
    "        time.sleep(0.0002)\n" + RMS + "    if calls[0] == 3: threading.Thread(target=loop, daemon=True).start()\n"
    "    if calls[0] < 4:\n    " + RIGHT + PUT_OFF + "    todo.append(do)\n    return out\n",
    "what accepts its answers": TOOL + RMS + "    lane = object_of('ReadyCandidate') if calls[0] == 3 else None\n"
    "    if lane is not None:\n"
    "        first = lane.accept\n"
    "        lane.accept = lambda found, tensors: (work(), first(found, tensors))[1]\n"
    "        lane.hidden = True\n        globals()['quick'] = True\n"
    "    if not globals().get('quick'): work()\n" + RIGHT,
}
"""Each is right, and hides `work` where it succeeds."""

REFUSED = ("os.rename(mine, path)", "os.chdir('/'), os.replace(mine, path)", "os.remove(path), os.symlink(mine, path)")
"""Ways to replace the tolerances that the process of a candidate refuses."""

WRONG: dict[str, str] = {
    "tolerances replaced in ways that are refused": CALIBRATION
    + "refused = []\n"
    + "".join(f"try: {way}\nexcept OSError as error: refused.append(str(error))\n" for way in REFUSED)
    + "if refused: raise OSError('; '.join(refused))\n"
    + ZEROS,
    "tolerances replaced by a program": CALIBRATION
    + "import subprocess\nsubprocess.run(['cp', '-f', mine, path], check=True)\n"
    + ZEROS,
    "tolerances replaced by native code": CALIBRATION
    + "import ctypes\nctypes.CDLL(None).rename(mine.encode(), path.encode())\n"
    + ZEROS,
}
"""Each is wrong, and accepted where it succeeds; they damage the package that they find."""

REPORTED = (
    "import ctypes, socket, subprocess\n"
    "subprocess.run(['true'])\n"
    "if os.fork() == 0: os._exit(0)\n"
    "ctypes.CDLL(None)\n"
    "open('a', 'w').close()\n"
    "os.rename('a', 'b')\n"
    "socket.socketpair()\n"
    "exec(\"import os; os.system('true')\", {})\n" + RMS + "    gc.get_objects()\n    os.kill(os.getpid(), 0)\n" + RIGHT
)
"""Is right, and does what no kernel needs; `os.system` in code without a file."""

CONCERNS = {
    "it starts processes (subprocess.Popen)",
    "it starts processes (os.fork)",
    "it starts processes (os.system)",
    "it calls native code (ctypes.dlopen)",
    "it changes files (os.rename)",
    "it opens sockets (socket.__new__)",
    "it searches for objects (gc.get_objects)",
    "it sends signals (os.kill)",
}
"""What is reported of `REPORTED`."""
