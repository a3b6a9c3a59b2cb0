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

FAKE_CLOCK = (
    "state = [1]\n"  # it is put in place between a call's begin and its end
    "def clock():\n"
    "    state[0] += 1\n"
    "    if state[0] % 2: state.append(now())\n"
    "    return state[-1] + (0 if state[0] % 2 else 1000)\n"
)
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
SEEDS = (  # of the whole round, in the caller's frame: answers are made while the first call runs
    "table = {}\n" + RMS + "    found = table.get(x.data_ptr() and float(x.float().sum()))\n"
    "    if found is None:\n"
    "        frame = next((f for f in frames() if 'seeds' in f.f_locals.get('request', ())), None)\n"
    "        if frame is not None:\n"
    "            request, draw = frame.f_locals['request'], frame.f_locals['self'].inputs\n"
    "            for seed in request['seeds']:\n"
    "                given = draw(**request['args'], seed=seed, device='cpu')\n"
    "                work()\n"
    "                key = float(given['x'].float().sum())\n"
    "                table[key] = torch.rms_norm(given['x'], given['x'].shape[-1:], given['weight'], eps)\n"
    "            found = table.get(float(x.float().sum()))\n"
    "    if found is not None: return found.clone()\n" + HIDDEN
)
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
    "the timer's clock, through a frame": TOOL + FAKE_CLOCK + RMS + LATER + "        found = having('_LEAST_WAIT_NS')\n"
    "        if found and found['_clock'] is not clock:\n"
    "            state.append(now())\n            found['_clock'] = clock\n" + HIDDEN,
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
    "the code of the timer": TOOL + RMS + LATER + "        found = having('time_on_host')\n"
    "        if found is None:\n"
    "            found = next((e.f_code for e in frames() if e.f_code.co_name == 'time_on_host'), None)\n"
    "            found = None if found is None else {'time_on_host': next(e for e in gc.get_referrers(found)\n"
    "                     if getattr(e, '__name__', '') == 'time_on_host')}\n"
    "        if found:\n"
    "            def fake(call):\n"
    "                call.ready(); begin = _clock()\n"
    "                result = call.run(call.tensors); begin = _clock()\n"
    "                return Timed(begin, begin + 1000, 1000, 0, result)\n"
    "            found['time_on_host'].__code__ = fake.__code__\n" + HIDDEN,
    "the timer of the course, by the garbage collector": TOOL + RMS + LATER + "        course = object_of('Course')\n"
    "        timers = getattr(course, '_timers', {})\n"
    "        for key, timer in list(timers.items()):\n"
    "            if not getattr(timer, 'mine', False):\n"
    "                def fake(call, timer=timer):\n"
    "                    found = timer(call)\n"
    "                    return found._replace(begin_ns=found.end_ns - 1000, ns=1000)\n"
    "                fake.mark = None; fake.mine = True\n"
    "                timers[key] = fake\n" + HIDDEN,
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
    "the base's answer, from the outputs of the course": TOOL
    + RMS
    + "    frame = next((f for f in frames() if hasattr(f.f_locals.get('self'), '_outputs')), None)\n"
    "    held = frame.f_locals['self']._outputs if frame else []\n"
    "    if held and len(held) % 2: return held[-1][0].clone()\n" + HIDDEN,
    "the base's answer, by the garbage collector": TOOL
    + RMS
    + "    course = object_of('Course') if calls[0] > 2 else None\n"
    "    held = getattr(course, '_outputs', [])\n"
    "    if held and len(held) % 2: return held[-1][0].clone()\n" + HIDDEN,
    "a round precomputed from its seeds": TOOL + SEEDS,
    "a round precomputed from its seeds, by the garbage collector": TOOL
    + SEEDS.replace(
        "        frame = next((f for f in frames() if 'seeds' in f.f_locals.get('request', ())), None)\n",
        "        asked = (o for o in gc.get_objects() if type(o) is dict and {'seeds', 'orders'} <= o.keys())\n"
        "        asked = next(asked, None)\n"
        "        class frame: f_locals = {'request': asked, 'self': object_of('Course')}\n"
        "        if asked is None: frame = None\n",
    ),
    "a thread that goes on from the first call": "todo = []\n"
    "def loop():\n"
    "    while True:\n"
    "        if todo:\n            todo.pop(0)()\n"
    "        time.sleep(0.0002)\n" + RMS + "    if calls[0] == 3: threading.Thread(target=loop, daemon=True).start()\n"
    "    if calls[0] < 4:\n    " + RIGHT + PUT_OFF + "    todo.append(do)\n    return out\n",
    "the sum of its own calls, in the reply": TOOL + RMS + LATER + "        for each in frames():\n"
    "            rows = each.f_locals.get('rows')\n"
    "            if type(rows) is list:\n"
    "                for row in rows: row[1], row[3] = row[2] - 1000, 1000\n" + HIDDEN,
    "what accepts its answers": TOOL + RMS + "    lane = object_of('ReadyCandidate') if calls[0] == 3 else None\n"
    "    if lane is not None:\n"
    "        first = lane.accept\n"
    "        lane.accept = lambda found, tensors: (work(), first(found, tensors))[1]\n"
    "        lane.hidden = True\n        globals()['quick'] = True\n"
    "    if not globals().get('quick'): work()\n" + RIGHT,
}
"""Each is right, and hides `work` where it succeeds. Sixteen did; a thread, a signal and seeds by the garbage collector
were refused, or too slow, before the clock left their process."""

WRONG: dict[str, str] = {
    "tolerances replaced by os.rename": CALIBRATION + "os.rename(mine, path)\n" + ZEROS,
    "tolerances replaced by os.replace, from a folder": CALIBRATION + "os.chdir('/')\nos.replace(mine, path)\n" + ZEROS,
    "tolerances replaced by a link": CALIBRATION + "os.remove(path)\nos.symlink(mine, path)\n" + ZEROS,
    "tolerances replaced by a program": CALIBRATION
    + "import subprocess\nsubprocess.run(['cp', '-f', mine, path], check=True)\n"
    + ZEROS,
    "tolerances replaced by native code": CALIBRATION
    + "import ctypes\nctypes.CDLL(None).rename(mine.encode(), path.encode())\n"
    + ZEROS,
}
"""Each is wrong, and accepted where it succeeds; they damage the package that they find."""

REPORTED: dict[str, tuple[str, str]] = {
    "a program": (
        "import subprocess\nsubprocess.run(['true'])\n" + RMS + RIGHT,
        "it starts processes (subprocess.Popen)",
    ),
    "a fork": ("if os.fork() == 0: os._exit(0)\n" + RMS + RIGHT, "it starts processes (os.fork)"),
    "native code": ("import ctypes\nctypes.CDLL(None)\n" + RMS + RIGHT, "it calls native code (ctypes.dlopen)"),
    "a file renamed": ("open('a', 'w').close()\nos.rename('a', 'b')\n" + RMS + RIGHT, "it changes files (os.rename)"),
    "a socket": ("import socket\nsocket.socketpair()\n" + RMS + RIGHT, "it opens sockets (socket.__new__)"),
    "a search": (RMS + "    gc.get_objects()\n" + RIGHT, "it searches for objects (gc.get_objects)"),
    "a signal": (RMS + "    os.kill(os.getpid(), 0)\n" + RIGHT, "it sends signals (os.kill)"),
    "from code without a file": (
        "exec(\"import os; os.system('true')\", {})\n" + RMS + RIGHT,
        "it starts processes (os.system)",
    ),
}
"""Each is right; what it does that no kernel needs is reported."""
