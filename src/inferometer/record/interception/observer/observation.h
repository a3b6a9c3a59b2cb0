// What is recorded now, of the process: its threads' lanes, and what Python has said of code objects.
#pragma once

#include "frames.h"
#include "lane.h"

#include <atomic>
#include <condition_variable>

namespace observations {

using lanes::Lane;

// `number`: of the recording, from 1 on; 0 while there is none.
struct Observation {
  std::atomic<uint64_t> number{0};
  uint64_t last_number = 0;
  std::atomic<bool> is_paused{false}; // nothing new is seen, what is open ends as ever
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

inline Observation* now = new Observation; // never deleted: threads may still run when the process ends

// A thread's lane in the recording of this number; at the thread's end it is over.
struct Held {
  uint64_t number = 0;
  uint64_t module_calls = 0; // of this thread, in all recordings
  std::shared_ptr<Lane> lane;

  ~Held() {
    if (lane && now->number == number) {
      const std::lock_guard lock(lane->lock);
      if (!lane->is_over) {
        lane->finish();
      }
    }
  }
};
inline thread_local Held held;

// This thread's lane in the recording that runs now; null when none does.
inline Lane* lane_here() {
  const uint64_t number = now->number.load(std::memory_order_acquire);
  if (number == 0) {
    return nullptr;
  }
  if (held.number != number) {
    const std::lock_guard lock(now->lock);
    const auto thread = static_cast<int64_t>(PyThread_get_thread_native_id());
    held.lane = std::make_shared<Lane>(thread, now->most_rows, now->has_frames);
    held.lane->split_ns = lanes::now_ns() + lanes::SPLIT_NS;
    held.number = number;
    now->lanes.push_back(held.lane);
  }
  return held.lane.get();
}

// Ask Python whose code this is, once. The GIL may have to be waited for: no lock may be held.
inline void learn(Lane& lane, PyCodeObject* code) {
  {
    const std::lock_guard lock(now->lock);
    if (const auto known = now->codes.find(code); known != now->codes.end()) {
      lane.codes.set(code, known->second);
      return;
    }
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* name = PyObject_CallOneArg(now->learn, reinterpret_cast<PyObject*>(code));
  if (name == nullptr) {
    PyErr_Clear();
  }
  const bool is_own = name != nullptr && name != Py_None;
  Py_XDECREF(name);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
  lane.codes.set(code, is_own);
  const std::lock_guard lock(now->lock);
  now->codes.emplace(code, is_own);
}

// `Lane::follow`, asking Python for what isn't known. The lane is locked before and after.
inline void follow(Lane& lane, std::unique_lock<std::mutex>& lock, const frames::Frame* frame) {
  PyCodeObject* unknown = nullptr;
  while (!lane.follow(frame, unknown)) {
    lock.unlock();
    learn(lane, unknown);
    lock.lock();
  }
}

} // namespace observations
