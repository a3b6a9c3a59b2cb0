// Sees each op of PyTorch's below autograd by a callback of `RecordFunction`, and each call of a module: name, thread,
// start and end, and what it was called with, into a buffer of its thread. Python takes the rows twice a second.
//
// Nothing here holds the GIL while an op runs, but for the first sight of a function of Python's. A module of Python's C
// API and no more, since it is built where it is used: `build.py`.
#include "observation.h" // first: it includes Python.h

#include "module_calls.h"
#include "op_calls.h"
#include "taken.h"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace {

using lanes::Lane;
using observations::lane_here;
using observations::Observation;

PyObject* start(PyObject*, PyObject* arguments) {
  PyObject* learn;
  int has_frames;
  Py_ssize_t most_rows;
  if (!PyArg_ParseTuple(arguments, "Opn", &learn, &has_frames, &most_rows)) {
    return nullptr;
  }
  auto* observation = observations::now;
  const std::lock_guard lock(observation->lock);
  if (observation->number != 0) {
    PyErr_SetString(PyExc_RuntimeError, "ops are observed already");
    return nullptr;
  }
  Py_XSETREF(observation->learn, Py_NewRef(learn));
  observation->lanes.clear();
  observation->has_frames = has_frames;
  observation->most_rows = static_cast<size_t>(most_rows);
  observation->is_wanted = false;
  observation->is_paused = false;
  if (observation->handle == at::INVALID_CALLBACK_HANDLE) {
    observation->handle = at::addGlobalCallback(at::RecordFunctionCallback(op_calls::begin, op_calls::end)
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
    auto* observation = observations::now;
    const std::lock_guard lock(observation->lock);
    if (observation->number == 0) {
      Py_RETURN_NONE;
    }
    observation->number = 0;
    at::disableCallback(observation->handle);
    observation->is_wanted = true;
    observation->wanted.notify_all();
  }
  for (const auto& lane : taken::lanes_now()) {
    const std::lock_guard lock(lane->lock);
    if (!lane->is_over) {
      lane->finish();
    }
  }
  Py_RETURN_NONE;
}

// Between the two PyTorch calls nobody, so a step costs what it does without a recording.
PyObject* set_paused(bool is_paused) {
  auto* observation = observations::now;
  const std::lock_guard lock(observation->lock);
  if (observation->number != 0 && observation->is_paused != is_paused) {
    observation->is_paused = is_paused;
    (is_paused ? at::disableCallback : at::reenableCallback)(observation->handle);
  }
  Py_RETURN_NONE;
}

PyObject* pause(PyObject*, PyObject*) {
  return set_paused(true);
}

PyObject* resume(PyObject*, PyObject*) {
  return set_paused(false);
}

// Until rows should be taken, at the end, or after so many seconds.
PyObject* wait(PyObject*, PyObject* seconds) {
  const double patience_s = PyFloat_AsDouble(seconds);
  if (PyErr_Occurred()) {
    return nullptr;
  }
  auto* observation = observations::now;
  Py_BEGIN_ALLOW_THREADS;
  std::unique_lock lock(observation->lock);
  observation->wanted.wait_for(lock, std::chrono::duration<double>(patience_s), [observation] {
    return observation->is_wanted.load();
  });
  observation->is_wanted = false;
  lock.unlock();
  Py_END_ALLOW_THREADS;
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
  const auto* parents = observations::now;
  auto* own = new Observation;
  own->last_number = parents->last_number;
  own->learn = parents->learn;
  own->handle = parents->handle;
  observations::now = own;
}
#endif

PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, "start(learn, has_frames, most_rows): observe from now on"},
    {"stop", stop, METH_NOARGS, "End it; what waits can still be taken"},
    {"pause", pause, METH_NOARGS, "See no ops and modules that begin, on any thread"},
    {"resume", resume, METH_NOARGS, "See them again"},
    {"wait", wait, METH_O, "wait(seconds): until rows should be taken"},
    {"take", taken::take, METH_NOARGS, "The rows that wait"},
    {"watch", module_calls::watch, METH_VARARGS, "watch(call_impl, compiler, text_of): see calls of modules"},
    {"unwatch", module_calls::unwatch, METH_NOARGS, "See them no more"},
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
