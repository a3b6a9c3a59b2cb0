// Calls of modules: while they are watched, the function that each of them goes through, `torch.nn.Module._call_impl`, is
// entered by another door of ours (its `vectorcall`). The function and its code stay the same objects, so nothing changes
// for torch.compile, for classes that call it, or for what copies or patches it. No Python runs for a call that is known.
// PyTorch calls it with `*args`, which goes by the door; Python 3.11 enters a function that is called without by itself.
#pragma once

#include "observation.h"

namespace module_calls {

using lanes::Lane;

struct Watched {
  PyFunctionObject* function = nullptr;
  vectorcallfunc original = nullptr;
  PyObject* compiler = nullptr; // the dict of torch.compiler
  PyObject* compiling = nullptr; // a name in it: what is called while that is true isn't the program's
  PyObject* text_of = nullptr; // the number of a module's text, given the module and the outermost one
};
inline Watched watched;

// The texts of modules by their address, with a weak reference that shows whether it is still the same module.
struct ModuleText {
  PyObject* reference;
  int64_t number;
};
inline std::unordered_map<PyObject*, ModuleText> module_texts;

inline bool is_same(PyObject* reference, PyObject* module) {
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
inline int64_t find_text(PyObject* module, PyObject* outermost) {
  const auto known = module_texts.find(module);
  if (known != module_texts.end() && is_same(known->second.reference, module)) {
    return known->second.number;
  }
  PyObject* number = PyObject_CallFunctionObjArgs(watched.text_of, module, outermost, nullptr);
  const int64_t text = number == nullptr ? -1 : PyLong_AsLongLong(number);
  Py_XDECREF(number);
  if (text < 0) {
    return -1;
  }
  if (PyObject* reference = PyWeakref_NewRef(module, nullptr)) {
    ModuleText& kept = module_texts[module];
    Py_XDECREF(kept.reference);
    kept = {reference, text};
  } else {
    PyErr_Clear(); // of a class without room for them: it is asked for each time
  }
  return text;
}

inline void forget_texts() {
  for (const auto& [module, text] : module_texts) {
    Py_DECREF(text.reference);
  }
  module_texts.clear();
}

inline bool is_compiling() {
  return PyDict_GetItemWithError(watched.compiler, watched.compiling) == Py_True;
}

// The number of this call on its thread; 0 where it isn't recorded, -1 after an error.
inline int64_t enter(PyObject* module) {
  if (observations::lane_here() == nullptr || observations::now->is_paused || is_compiling()) {
    return 0;
  }
  const std::shared_ptr<Lane> lane = observations::held.lane; // Python is asked below: another recording may begin
  std::unique_lock lock(lane->lock);
  if (lane->is_over) {
    return 0;
  }
  const frames::Frame* caller = lane->has_frames ? frames::current() : nullptr;
  if (caller != nullptr) {
    observations::follow(*lane, lock, caller);
  }
  PyObject* outermost = lane->levels.empty() ? module : lane->levels.front().module;
  lock.unlock(); // Python is asked for a text that isn't known; only this thread changes the levels
  const int64_t text = find_text(module, outermost);
  if (text < 0) {
    return -1;
  }
  lock.lock();
  if (lane->is_over) {
    return 0;
  }
  const auto number = static_cast<int64_t>(++observations::held.module_calls);
  lane->enter(module, text, number, caller);
  return number;
}

inline void leave(int64_t number) {
  const int64_t end_ns = lanes::now_ns();
  if (Lane* lane = observations::lane_here()) {
    const std::lock_guard lock(lane->lock);
    lane->leave(number, end_ns);
  }
}

// In place of the function's own door. The caller holds the module until it returns.
inline PyObject* call(PyObject* function, PyObject* const* arguments, size_t flagged, PyObject* names) {
  const int64_t number = PyVectorcall_NARGS(flagged) > 0 ? enter(arguments[0]) : 0;
  if (number < 0) {
    return nullptr;
  }
  PyObject* result = watched.original(function, arguments, flagged, names);
  if (number > 0) {
    leave(number);
  }
  return result;
}

inline void set_door(PyFunctionObject* function, vectorcallfunc door) {
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(function, door);
#else
  function->vectorcall = door;
#endif
}

inline PyObject* unwatch(PyObject*, PyObject*) {
  if (watched.function != nullptr && watched.function->vectorcall == call) { // else another's, which may call ours
    set_door(watched.function, watched.original);
  }
  Py_RETURN_NONE;
}

inline PyObject* watch(PyObject*, PyObject* arguments) {
  PyObject *function, *compiler, *text_of;
  if (!PyArg_ParseTuple(arguments, "O!O!O", &PyFunction_Type, &function, &PyDict_Type, &compiler, &text_of)) {
    return nullptr;
  }
  if (watched.compiling == nullptr && (watched.compiling = PyUnicode_InternFromString("_is_compiling_flag")) == nullptr) {
    return nullptr;
  }
  Py_XSETREF(watched.compiler, Py_NewRef(compiler));
  Py_XSETREF(watched.text_of, Py_NewRef(text_of));
  forget_texts();
  auto* as_function = reinterpret_cast<PyFunctionObject*>(function);
  if (as_function->vectorcall != call) {
    watched.original = as_function->vectorcall;
    Py_XSETREF(watched.function, reinterpret_cast<PyFunctionObject*>(Py_NewRef(function)));
    set_door(watched.function, call);
  }
  Py_RETURN_NONE;
}

} // namespace module_calls
