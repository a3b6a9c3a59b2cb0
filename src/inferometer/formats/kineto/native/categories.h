// The categories of events that are decoded here, and the arguments that each of them has: those of typed.py.
#pragma once

#include "event.h"

namespace kineto {

enum class Kind { LAUNCH, CALL, OP, FRAME, SPAN, DEVICE_SPAN, FLOW };

struct Category {
  std::string_view name;
  Kind kind;
  std::string_view label; // a launch's kind, a span's domain
};

// Their places in this list are their numbers, which Python knows, too.
constexpr Category CATEGORIES[] = {
    {"kernel", Kind::LAUNCH, "kernel"},
    {"gpu_memcpy", Kind::LAUNCH, "memcpy"},
    {"gpu_memset", Kind::LAUNCH, "memset"},
    {"cuda_runtime", Kind::CALL, ""},
    {"cuda_driver", Kind::CALL, ""},
    {"hip_runtime", Kind::CALL, ""},
    {"hip_driver", Kind::CALL, ""},
    {"cpu_op", Kind::OP, ""},
    {"python_function", Kind::FRAME, ""},
    {"user_annotation", Kind::SPAN, "user_annotation"},
    {"overhead", Kind::SPAN, "overhead"},
    {"gpu_user_annotation", Kind::DEVICE_SPAN, "gpu_user_annotation"},
    {"cuda_sync", Kind::DEVICE_SPAN, "cuda_sync"},
    {"ac2g", Kind::FLOW, ""},
    {"fwdbwd", Kind::FLOW, ""},
    {"async_cpu_to_gpu", Kind::FLOW, ""},
    {"async_gpu", Kind::FLOW, ""},
};
constexpr int CATEGORY_COUNT = std::size(CATEGORIES);
constexpr int FOREIGN = -1; // any other

// `name` is JSON text, with its quotes.
inline int find_category(std::string_view name) {
  if (name.size() < 2) {
    return FOREIGN;
  }
  const std::string_view inside = name.substr(1, name.size() - 2);
  for (int i = 0; i < CATEGORY_COUNT; ++i) {
    if (CATEGORIES[i].name == inside) {
      return i;
    }
  }
  return FOREIGN;
}

inline const Arguments& arguments_of(Kind kind) {
  static const Arguments LAUNCH = {
      {"External id", &Args::external_id},
      {"queued", &Args::queued},
      {"device", &Args::device},
      {"context", &Args::context},
      {"stream", &Args::stream},
      {"correlation", &Args::correlation},
      {"registers per thread", &Args::registers},
      {"shared memory", &Args::shared},
      {"grid", &Args::grid},
      {"block", &Args::block},
      {"est. achieved occupancy %", &Args::occupancy},
      {"graph id", &Args::graph_id},
      {"graph node id", &Args::graph_node_id},
      {"bytes", &Args::bytes},
      {"external id", &Args::old_external_id},
  };
  static const Arguments CALL = {
      {"External id", &Args::external_id},
      {"correlation", &Args::correlation},
      {"kernel", &Args::kernel},
      {"grid", &Args::grid},
      {"block", &Args::block},
      {"stream", &Args::stream_handle},
      {"bytes", &Args::bytes},
      {"size", &Args::size},
      {"external id", &Args::old_external_id},
  };
  static const Arguments OP = {
      {"External id", &Args::external_id},
      {"Record function id", &Args::record_function_id},
      {"Concrete Inputs", &Args::scalars},
      {"Input type", &Args::dtypes},
      {"Input Strides", &Args::strides},
      {"Input Dims", &Args::dims},
      {"Sequence number", &Args::sequence_number},
      {"kernel_file", &Args::kernel_file},
      {"kernel_hash", &Args::kernel_hash},
      {"kernel_backend", &Args::kernel_backend},
      {"Input dims", &Args::old_dims},
      {"external id", &Args::old_external_id},
  };
  static const Arguments FRAME = {
      {"Python parent id", &Args::parent},
      {"Python id", &Args::frame_id},
  };
  static const Arguments SPAN = {
      {"Input Dims", &Args::dims},
      {"Input type", &Args::dtypes},
  };
  static const Arguments DEVICE_SPAN = {
      {"device", &Args::device},
      {"stream", &Args::stream},
  };
  static const Arguments NONE;
  switch (kind) {
    case Kind::LAUNCH:
      return LAUNCH;
    case Kind::CALL:
      return CALL;
    case Kind::OP:
      return OP;
    case Kind::FRAME:
      return FRAME;
    case Kind::SPAN:
      return SPAN;
    case Kind::DEVICE_SPAN:
      return DEVICE_SPAN;
    case Kind::FLOW:
      break;
  }
  return NONE;
}

} // namespace kineto
