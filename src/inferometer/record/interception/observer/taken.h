// The rows that wait, as Python takes them. All is called with the GIL, and waits for a lane's lock only as long as its
// thread appends a row.
#pragma once

#include "observation.h"

namespace taken {

using lanes::Lane;

struct Dropped {
  void operator()(PyObject* object) const {
    Py_DECREF(object);
  }
};
using Ref = std::unique_ptr<PyObject, Dropped>; // owned; null after an error

inline std::vector<std::shared_ptr<Lane>> lanes_now() {
  const std::lock_guard lock(observations::now->lock);
  return observations::now->lanes;
}

// Where the words of one argument begin; moved behind them.
inline PyObject* read_argument(const int64_t*& word) {
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
inline PyObject* read_call(const calls::Calls::Described& call) {
  const int64_t* word = call.words.data();
  const int64_t* end = word + call.words.size();
  const ops::Op* op = observations::now->ops.at(*word++);
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
inline PyObject* take_from(Lane& lane) {
  std::unique_lock lock(lane.lock);
  const auto ops = lane.op_rows.take();
  const auto frames = lane.frame_rows.take();
  const auto modules = lane.module_rows.take();
  const auto fresh = lane.calls.take_fresh();
  const uint32_t first = lane.calls.first();
  const size_t lost_ops = lane.op_rows.take_lost();
  const size_t lost_ranges = lane.frame_rows.take_lost() + lane.module_rows.take_lost();
  const size_t open_ops = lane.is_over ? std::exchange(lane.open_ops, 0) : 0;
  lock.unlock();
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
inline PyObject* take(PyObject*, PyObject*) {
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
      const std::lock_guard lock(observations::now->lock);
      auto& all = observations::now->lanes;
      all.erase(std::remove(all.begin(), all.end(), lane), all.end());
    }
  }
  return taken.release();
}

} // namespace taken
