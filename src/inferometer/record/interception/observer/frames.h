// Python's frames as the interpreter keeps them: the public functions need the GIL, which PyTorch has released when an
// op begins. A thread's own frames don't change while it is in a call, so it may read them without the GIL.
//
// Source: CPython's Include/internal/pycore_frame.h, 3.11 to 3.13; walked with each of them beside sys._getframe.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "frames of this version of Python aren't known"
#endif
#ifdef Py_GIL_DISABLED
#error "Python without the GIL: another thread may free what is read here"
#endif

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED // 3.12 declares it twice: https://github.com/python/cpython/issues/105268
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace frames {

using Frame = _PyInterpreterFrame;

// The code object that a frame runs; null for the interpreter's own entries on the stack.
inline PyCodeObject* code_of(const Frame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* code = frame->f_executable;
  return code != nullptr && PyCode_Check(code) ? reinterpret_cast<PyCodeObject*>(code) : nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
  return frame->owner == FRAME_OWNED_BY_CSTACK ? nullptr : frame->f_code;
#else
  return frame->f_code;
#endif
}

// Where in its code a frame is: it tells one call that a function makes from the next.
inline const void* instruction_of(const Frame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
  return frame->instr_ptr;
#else
  return frame->prev_instr;
#endif
}

inline const Frame* skip_entries(const Frame* frame) {
  while (frame != nullptr && code_of(frame) == nullptr) {
    frame = frame->previous;
  }
  return frame;
}

// The innermost frame of this thread; null on a thread that Python doesn't know.
inline const Frame* current() {
  PyThreadState* state = PyGILState_GetThisThreadState();
  if (state == nullptr) {
    return nullptr;
  }
#if PY_VERSION_HEX >= 0x030D0000
  return skip_entries(state->current_frame);
#else
  return state->cframe == nullptr ? nullptr : skip_entries(state->cframe->current_frame);
#endif
}

inline const Frame* caller_of(const Frame* frame) {
  return skip_entries(frame->previous);
}

} // namespace frames
