// Sees each op of PyTorch's below autograd by a callback of `RecordFunction`: name, thread, start and end, and what it was
// called with, into a buffer of its thread. Python takes the rows twice a second.
//
// Nothing here holds the GIL while an op runs, but for the first sight of a function of Python's. A module of Python's C
// API and no more, since it is built where it is used: `build.py`.
#include "frames.h" // first: it includes Python.h

#include "lane.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace {

using lanes::Lane;

// What is recorded now, of the process. `number`: of the recording, from 1 on; 0 while there is none.
struct Observation {
  std::atomic<uint64_t> number{0};
  uint64_t last_number = 0;
  std::atomic<bool> is_wanted{false}; // rows, soon: a buffer is half full
  std::mutex lock; // of what follows
  std::condition_variable wanted;
  std::vector<std::shared_ptr<Lane>> lanes;
  size_t most_rows = 0;
  bool has_frames = false;
  PyObject* learn = nullptr; // the name of a code object, None for what is not the user's
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  std::unordered_map<PyCodeObject*, bool> codes; // whether they are the user's; `learn` keeps them alive
  ops::Table ops;
};

Observation* observation = new Observation; // never deleted: threads may still run when the process ends

// A thread's lane in the recording of this number; at the thread's end it is over.
struct Held {
  uint64_t number = 0;
  std::shared_ptr<Lane> lane;

  ~Held() {
    if (lane && observation->number == number) {
      const std::lock_guard lock(lane->lock);
      if (!lane->is_over) {
        lane->finish();
      }
    }
  }
};
thread_local Held held;

// This thread's lane in the recording that runs now; null when none does.
Lane* lane_here() {
  const uint64_t number = observation->number.load(std::memory_order_acquire);
  if (number == 0) {
    return nullptr;
  }
  if (held.number != number) {
    const std::lock_guard lock(observation->lock);
    const auto thread = static_cast<int64_t>(PyThread_get_thread_native_id());
    held.lane = std::make_shared<Lane>(thread, observation->most_rows, observation->has_frames);
    held.lane->split_ns = lanes::now_ns() + lanes::SPLIT_NS;
    held.number = number;
    observation->lanes.push_back(held.lane);
  }
  return held.lane.get();
}

// Ask Python whose code this is, once. The GIL may have to be waited for: no lock may be held.
void learn(Lane& lane, PyCodeObject* code) {
  {
    const std::lock_guard lock(observation->lock);
    if (const auto known = observation->codes.find(code); known != observation->codes.end()) {
      lane.codes.set(code, known->second);
      return;
    }
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* name = PyObject_CallOneArg(observation->learn, reinterpret_cast<PyObject*>(code));
  if (name == nullptr) {
    PyErr_Clear();
  }
  const bool is_own = name != nullptr && name != Py_None;
  Py_XDECREF(name);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
  lane.codes.set(code, is_own);
  const std::lock_guard lock(observation->lock);
  observation->codes.emplace(code, is_own);
}

// `Lane::follow`, asking Python for what isn't known. The lane is locked before and after.
void follow(Lane& lane, std::unique_lock<std::mutex>& lock, const frames::Frame* frame) {
  PyCodeObject* unknown = nullptr;
  while (!lane.follow(frame, unknown)) {
    lock.unlock();
    learn(lane, unknown);
    lock.lock();
  }
}

const ops::Op* op_of(Lane& lane, const at::RecordFunction& call) {
  const ops::Op*& known = lane.ops_by_name[call.name()];
  if (known == nullptr || !known->is_called(call)) {
    known = observation->ops.find(call);
  }
  return known;
}

} // namespace

// An op that has begun.
struct lanes::OpenOp : at::ObserverContext {
  std::shared_ptr<Lane> lane;
  const ops::Op* op = nullptr;
  bool may_call_itself = false;
  bool is_seen = true;
  uint32_t call = 0;
  int exceptions = 0;
  int64_t start_ns = 0;
  calls::Gathered inputs;
};

namespace {

using lanes::OpenOp;

// Whether this call of an op is one to the recording. Gathers its keys, and describes it in `lane.words`.
bool is_op(Lane& lane, const ops::Op& op, const at::RecordFunction& call, calls::Gathered& inputs) {
  lane.words.clear();
  lane.words.push_back(op.index);
  calls::Describer describer(lane.words, inputs);
  bool is_whole = true;
  for (const auto& input : call.inputs()) {
    is_whole = describer.add(input) && is_whole;
  }
  if (!is_whole) {
    lane.words.assign({op.index, calls::UNREAD});
  }
  const auto local = c10::impl::tls_local_dispatch_key_set();
  inputs.keys = (inputs.keys | local.included_) - local.excluded_;
  const bool is_meta = inputs.keys.has_backend(c10::BackendComponent::MetaBit); // nothing is computed; fakes are made so
  return !is_meta && !op.is_taken_apart(inputs.keys);
}

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction& call) {
  Lane* lane = lane_here();
  if (lane == nullptr) {
    return nullptr;
  }
  OpenOp* around = lane->hiding;
  if (around != nullptr && !around->may_call_itself) {
    return nullptr;
  }
  if (c10::impl::dispatch_mode_enabled() || c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python)) {
    return nullptr; // a mode will call what it makes of it; without the key nothing asks a mode
  }
  const ops::Op* op = op_of(*lane, call);
  if (!op->handle || (around != nullptr && around->op != op)) {
    return nullptr;
  }
  calls::Gathered inputs;
  if (!is_op(*lane, *op, call, inputs)) {
    return nullptr;
  }
  auto opened = std::make_unique<OpenOp>();
  opened->inputs = inputs;
  if (around != nullptr) {
    around->is_seen = false; // an autograd function that calls its op below autograd: that one is the op
  }
  opened->op = op;
  opened->may_call_itself = op->is_own_autograd && !(opened->inputs.keys & c10::autograd_dispatch_keyset).empty();
  opened->exceptions = std::uncaught_exceptions();
  std::unique_lock lock(lane->lock);
  if (lane->is_over) {
    return nullptr;
  }
  if (lane->has_frames) {
    follow(*lane, lock, frames::current());
  }
  opened->lane = held.lane;
  opened->call = lane->calls.find(lane->words);
  const bool is_subclass = opened->inputs.keys.has(c10::DispatchKey::Python); // whose handler calls ops of its own
  lane->hiding = is_subclass ? nullptr : opened.get();
  ++lane->open_ops;
  opened->start_ns = lanes::now_ns();
  return opened;
}

// The first tensor of a result; null where there is none.
const at::TensorImpl* first_tensor(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto* tensor = value.unsafeToTensorImpl();
    return tensor == c10::UndefinedTensorImpl::singleton() ? nullptr : tensor;
  }
  if (value.isTensorList() || value.isList()) {
    for (const auto& each : value.toListRef()) {
      if (const auto* found = first_tensor(each)) {
        return found;
      }
    }
  }
  return nullptr;
}

uint32_t flags_of(const OpenOp& op, const at::RecordFunction& call, bool is_leaf) {
  if (std::uncaught_exceptions() > op.exceptions) {
    return lanes::FAILED;
  }
  const at::TensorImpl* out = nullptr;
  for (const auto& each : call.outputs()) {
    if (out == nullptr) {
      out = first_tensor(each);
    }
  }
  uint32_t flags = is_leaf ? lanes::LEAF : 0;
  flags |= (out != nullptr ? out->is_cpu() : op.inputs.is_on_cpu) ? lanes::ON_CPU : 0;
  const void* storage = out == nullptr ? nullptr : calls::storage_of(out);
  const auto* inputs = op.inputs.storage;
  const auto* end = inputs + op.inputs.storages;
  const bool is_shared = storage != nullptr && std::find(inputs, end, storage) != end;
  return flags | (is_shared ? lanes::SHARES_MEMORY : 0);
}

void end_op(const at::RecordFunction& call, at::ObserverContext* context) {
  auto* op = static_cast<OpenOp*>(context);
  if (op == nullptr) {
    return;
  }
  const int64_t end_ns = lanes::now_ns();
  Lane& lane = *op->lane;
  bool is_wanted = false;
  {
    const std::lock_guard lock(lane.lock);
    --lane.open_ops;
    if (lane.hiding == op) {
      lane.hiding = nullptr;
    }
    if (lane.is_over || !op->is_seen) {
      return;
    }
    lane.op_rows.add({op->start_ns, end_ns, op->call, flags_of(*op, call, lane.last_ns < op->start_ns)});
    lane.last_ns = end_ns;
    if (lane.levels.empty() && end_ns > lane.split_ns) {
      lane.close_frames();
      lane.split_ns = end_ns + lanes::SPLIT_NS;
    }
    is_wanted = lane.op_rows.is_half_full() || lane.frame_rows.is_half_full();
  }
  if (is_wanted && !observation->is_wanted.exchange(true)) {
    observation->wanted.notify_all();
  }
}

// What Python calls. All have the GIL, and wait for a lane's lock only as long as its thread appends a row.

struct Dropped {
  void operator()(PyObject* object) const {
    Py_DECREF(object);
  }
};
using Ref = std::unique_ptr<PyObject, Dropped>; // owned; null after an error

std::vector<std::shared_ptr<Lane>> lanes_now() {
  const std::lock_guard lock(observation->lock);
  return observation->lanes;
}

// The texts of modules by their address, with a weak reference that shows whether it is still the same module.
struct ModuleText {
  PyObject* reference;
  int64_t number;
};
std::unordered_map<PyObject*, ModuleText> module_texts;
PyObject* text_of = nullptr; // the number of a module's text, given the module and the outermost one

bool is_same(PyObject* reference, PyObject* module) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* alive = nullptr;
  const bool is_there = PyWeakref_GetRef(reference, &alive) == 1 && alive == module;
  Py_XDECREF(alive);
  return is_there;
#else
  return PyWeakref_GetObject(reference) == module;
#endif
}

// -1 after an error.
int64_t find_text(PyObject* module, PyObject* outermost) {
  const auto known = module_texts.find(module);
  if (known != module_texts.end() && is_same(known->second.reference, module)) {
    return known->second.number;
  }
  const Ref number(PyObject_CallFunctionObjArgs(text_of, module, outermost, nullptr));
  const int64_t text = number ? PyLong_AsLongLong(number.get()) : -1;
  PyObject* reference = text < 0 ? nullptr : PyWeakref_NewRef(module, nullptr);
  if (reference == nullptr) {
    return -1;
  }
  ModuleText& kept = module_texts[module];
  Py_XDECREF(kept.reference);
  kept = {reference, text};
  return text;
}

void forget_texts() {
  for (const auto& [module, text] : module_texts) {
    Py_DECREF(text.reference);
  }
  module_texts.clear();
}

void give_back(std::vector<PyObject*> modules) {
  for (PyObject* module : modules) {
    Py_DECREF(module);
  }
}

PyObject* start(PyObject*, PyObject* arguments) {
  PyObject *learn, *texts;
  int has_frames;
  Py_ssize_t most_rows;
  if (!PyArg_ParseTuple(arguments, "OOpn", &learn, &texts, &has_frames, &most_rows)) {
    return nullptr;
  }
  const std::lock_guard lock(observation->lock);
  if (observation->number != 0) {
    PyErr_SetString(PyExc_RuntimeError, "ops are observed already");
    return nullptr;
  }
  Py_XSETREF(observation->learn, Py_NewRef(learn));
  Py_XSETREF(text_of, Py_NewRef(texts));
  forget_texts();
  observation->lanes.clear();
  observation->has_frames = has_frames;
  observation->most_rows = static_cast<size_t>(most_rows);
  observation->is_wanted = false;
  if (observation->handle == at::INVALID_CALLBACK_HANDLE) {
    observation->handle = at::addGlobalCallback(at::RecordFunctionCallback(begin_op, end_op)
                                                    .needsInputs(true)
                                                    .needsOutputs(true)
                                                    .scopes({at::RecordScope::FUNCTION}));
  } else {
    at::reenableCallback(observation->handle);
  }
  observation->number = ++observation->last_number;
  Py_RETURN_NONE;
}

PyObject* stop(PyObject*, PyObject*) {
  {
    const std::lock_guard lock(observation->lock);
    if (observation->number == 0) {
      Py_RETURN_NONE;
    }
    observation->number = 0;
    at::disableCallback(observation->handle);
    observation->is_wanted = true;
    observation->wanted.notify_all();
  }
  for (const auto& lane : lanes_now()) {
    const std::lock_guard lock(lane->lock);
    if (!lane->is_over) {
      lane->finish();
    }
  }
  Py_RETURN_NONE;
}

// Until rows should be taken, at the end, or after so many seconds.
PyObject* wait(PyObject*, PyObject* seconds) {
  const double patience_s = PyFloat_AsDouble(seconds);
  if (PyErr_Occurred()) {
    return nullptr;
  }
  Py_BEGIN_ALLOW_THREADS;
  std::unique_lock lock(observation->lock);
  observation->wanted.wait_for(lock, std::chrono::duration<double>(patience_s), [] {
    return observation->is_wanted.load();
  });
  observation->is_wanted = false;
  lock.unlock();
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// Where the words of one argument begin; moved behind them.
PyObject* read_argument(const int64_t*& word) {
  const auto read_sizes = [&word](int64_t count) {
    PyObject* sizes = PyTuple_New(count);
    for (int64_t i = 0; sizes != nullptr && i < count; ++i) {
      PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(*word++));
    }
    return sizes;
  };
  switch (*word++) {
    case calls::TENSOR: {
      const auto type = c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(*word++)).name();
      const int64_t count = *word++;
      PyObject* sizes = read_sizes(count);
      PyObject* strides = read_sizes(count);
      return Py_BuildValue("(NNs#)", sizes, strides, type.data(), static_cast<Py_ssize_t>(type.size()));
    }
    case calls::INTEGER:
      return PyLong_FromLongLong(*word++);
    case calls::NUMBER:
      return PyFloat_FromDouble(calls::number(*word++));
    case calls::COMPLEX:
      word += 2;
      return PyComplex_FromDoubles(calls::number(word[-2]), calls::number(word[-1]));
    case calls::BOOLEAN:
      return PyBool_FromLong(static_cast<long>(*word++));
    case calls::LIST: {
      const int64_t count = *word++;
      PyObject* list = PyList_New(count);
      for (int64_t i = 0; list != nullptr && i < count; ++i) {
        PyList_SET_ITEM(list, i, read_argument(word));
      }
      return list;
    }
    default:
      return Py_NewRef(Py_None);
  }
}

// Number, name and overload of the op, and its arguments: None where they couldn't be read.
PyObject* read_call(const calls::Calls::Described& call) {
  const int64_t* word = call.words.data();
  const int64_t* end = word + call.words.size();
  const ops::Op* op = observation->ops.at(*word++);
  Ref arguments;
  if (word != end && *word == calls::UNREAD) {
    arguments.reset(Py_NewRef(Py_None));
  } else {
    arguments.reset(PyList_New(0));
    while (arguments && word != end) {
      const Ref argument(read_argument(word));
      if (!argument || PyList_Append(arguments.get(), argument.get()) != 0) {
        return nullptr;
      }
    }
  }
  return arguments ? Py_BuildValue("(IssN)", call.number, op->name.c_str(), op->overload.c_str(), arguments.release())
                   : nullptr;
}

template <typename Row>
PyObject* bytes_of(const std::vector<Row>& rows) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(rows.data()), sizeof(Row) * rows.size());
}

// All that a lane has: thread; ops, frames, modules; calls first seen; the first call that may come again; rows lost;
// ops that never ended.
PyObject* take_from(Lane& lane) {
  std::unique_lock lock(lane.lock);
  const auto ops = lane.op_rows.take();
  const auto frames = lane.frame_rows.take();
  const auto modules = lane.module_rows.take();
  const auto fresh = lane.calls.take_fresh();
  const uint32_t first = lane.calls.first();
  const size_t lost_ops = lane.op_rows.take_lost();
  const size_t lost_ranges = lane.frame_rows.take_lost() + lane.module_rows.take_lost();
  const size_t open_ops = lane.is_over ? std::exchange(lane.open_ops, 0) : 0;
  auto released = std::exchange(lane.released, {});
  lock.unlock();
  give_back(std::move(released));
  Ref calls(PyList_New(0));
  for (const auto& each : fresh) {
    const Ref call(calls ? read_call(each) : nullptr);
    if (!call || PyList_Append(calls.get(), call.get()) != 0) {
      return nullptr;
    }
  }
  return !calls ? nullptr
                : Py_BuildValue(
                      "(LNNNNInnn)",
                      static_cast<long long>(lane.thread),
                      bytes_of(ops),
                      bytes_of(frames),
                      bytes_of(modules),
                      calls.release(),
                      first,
                      static_cast<Py_ssize_t>(lost_ops),
                      static_cast<Py_ssize_t>(lost_ranges),
                      static_cast<Py_ssize_t>(open_ops));
}

// What waits on all threads, a tuple each, under the number of the lane; lanes that are over are gone then.
PyObject* take(PyObject*, PyObject*) {
  Ref taken(PyList_New(0));
  for (const auto& lane : lanes_now()) {
    bool is_over = false;
    {
      const std::lock_guard lock(lane->lock);
      is_over = lane->is_over;
    }
    const Ref rows(taken ? take_from(*lane) : nullptr);
    const auto address = reinterpret_cast<long long>(lane.get());
    const Ref both(rows ? Py_BuildValue("(LOO)", address, is_over ? Py_True : Py_False, rows.get()) : nullptr);
    if (!both || PyList_Append(taken.get(), both.get()) != 0) {
      return nullptr;
    }
    if (is_over) {
      const std::lock_guard lock(observation->lock);
      auto& all = observation->lanes;
      all.erase(std::remove(all.begin(), all.end(), lane), all.end());
    }
  }
  return taken.release();
}

// A module is called: `frame`, the hook's caller, is where its own functions begin.
PyObject* enter(PyObject*, PyObject* module) {
  Lane* lane = lane_here();
  if (lane == nullptr) {
    Py_RETURN_NONE;
  }
  std::unique_lock lock(lane->lock);
  if (lane->is_over) {
    Py_RETURN_NONE;
  }
  const frames::Frame* hook = lane->has_frames ? frames::current() : nullptr;
  const frames::Frame* boundary = hook == nullptr ? nullptr : frames::caller_of(hook);
  if (boundary != nullptr) {
    follow(*lane, lock, frames::caller_of(boundary));
  }
  PyObject* outermost = lane->levels.empty() ? module : lane->levels.front().module;
  lock.unlock(); // Python is asked for a text that isn't known; only this thread changes the levels
  const int64_t text = find_text(module, outermost);
  if (text < 0) {
    return nullptr;
  }
  lock.lock();
  if (!lane->is_over) {
    const int64_t start_ns = lanes::now_ns();
    lane->levels.push_back(
        {Py_NewRef(module), text, start_ns, std::move(lane->chain), std::move(lane->open), lane->boundary});
    lane->chain.clear();
    lane->open.clear();
    lane->boundary = boundary;
  }
  Py_RETURN_NONE;
}

// A module's call is over, and with it those within it that an interrupt has left open.
PyObject* leave(PyObject*, PyObject* module) {
  const int64_t end_ns = lanes::now_ns();
  Lane* lane = lane_here();
  if (lane == nullptr) {
    Py_RETURN_NONE;
  }
  std::vector<PyObject*> released;
  {
    const std::lock_guard lock(lane->lock);
    const auto& levels = lane->levels;
    const auto is_this = [module](const lanes::Level& level) { return level.module == module; };
    if (std::none_of(levels.rbegin(), levels.rend(), is_this)) {
      Py_RETURN_NONE; // its call began before the recording
    }
    bool is_left = false;
    while (!is_left) {
      is_left = is_this(levels.back());
      lane->leave(end_ns);
    }
    released = std::exchange(lane->released, {});
  }
  give_back(std::move(released));
  Py_RETURN_NONE;
}

// Ranges of functions end here, on this thread, unless a module is open.
PyObject* cut(PyObject*, PyObject*) {
  if (Lane* lane = lane_here()) {
    const std::lock_guard lock(lane->lock);
    if (lane->levels.empty()) {
      lane->close_frames();
    }
  }
  Py_RETURN_NONE;
}

// What ran from `start_ns` on is over, which is no op of the dispatcher: its thread, end, and whether no op ran in it.
PyObject* end_region(PyObject*, PyObject* start) {
  const int64_t start_ns = PyLong_AsLongLong(start);
  Lane* lane = lane_here();
  if (PyErr_Occurred() || lane == nullptr) {
    return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
  }
  const std::lock_guard lock(lane->lock);
  const bool is_leaf = lane->last_ns < start_ns;
  lane->last_ns = lanes::now_ns();
  return Py_BuildValue("(LLO)", static_cast<long long>(lane->thread), static_cast<long long>(lane->last_ns),
                       is_leaf ? Py_True : Py_False);
}

PyObject* now(PyObject*, PyObject*) {
  return PyLong_FromLongLong(lanes::now_ns());
}

#ifndef _WIN32
// In a forked child the locks may be held by threads that are not there: all begins anew, what the parent had stays its.
void forget_parent() {
  auto* parents = observation;
  observation = new Observation;
  observation->last_number = parents->last_number;
  observation->learn = parents->learn;
  observation->handle = parents->handle;
}
#endif

PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, "start(learn, text_of, has_frames, most_rows): observe from now on"},
    {"stop", stop, METH_NOARGS, "End it; what waits can still be taken"},
    {"wait", wait, METH_O, "wait(seconds): until rows should be taken"},
    {"take", take, METH_NOARGS, "The rows that wait"},
    {"enter", enter, METH_O, "enter(module): called by a hook"},
    {"leave", leave, METH_O, "leave(module): called by a hook"},
    {"cut", cut, METH_NOARGS, "End ranges of functions on this thread"},
    {"end_region", end_region, METH_O, "end_region(start_ns): thread, end, whether no op ran in it"},
    {"now", now, METH_NOARGS, "Nanoseconds on the clock of all times"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "observer", nullptr, -1, methods};

} // namespace

PyMODINIT_FUNC PyInit_observer() {
#ifndef _WIN32
  pthread_atfork(nullptr, nullptr, forget_parent);
#endif
  return PyModule_Create(&module);
}
