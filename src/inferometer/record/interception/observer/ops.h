// Which calls of the dispatcher are ops to a recording: those that a dispatch mode of Python's would see, below autograd.
//
// A mode is asked at the key `Python`, once autograd, autocast and functorch have had the op. What they make other ops of
// never gets there; those others do. So a call that will be taken apart above `Python` is looked through.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ops {

using c10::DispatchKey;
using c10::DispatchKeySet;

// What lies above `Python` and calls the op, or others, anew.
const DispatchKeySet CALLS_ANEW({
    DispatchKey::FuncTorchDynamicLayerFrontMode,
    DispatchKey::FuncTorchDynamicLayerBackMode,
    DispatchKey::FuncTorchVmapMode,
    DispatchKey::FuncTorchBatched,
    DispatchKey::FuncTorchGradWrapper,
    DispatchKey::Batched,
    DispatchKey::VmapMode,
    DispatchKey::Functionalize,
});

// An overload of an op. `index`: its place in the table of all.
struct Op {
  int64_t index;
  std::string name;
  std::string overload;
  std::optional<c10::OperatorHandle> handle; // none: a range of PyTorch's C++ code, no op

  bool is_composite = false; // made of other ops where autograd has its say
  bool ends_in_autograd = false; // nothing of it gets below
  bool is_own_autograd = false; // an op of a library with an autograd function of its own, which may call the op again

  bool is_called(const at::RecordFunction& call) const {
    return name == call.name() && overload == call.overload_name();
  }

  bool has_kernel(DispatchKey key) const {
    return handle->hasKernelForDispatchKey(key) && !handle->isKernelFallthroughKernel(key);
  }

  // Whether a call with these keys is taken apart before a dispatch mode would see it.
  bool is_taken_apart(DispatchKeySet keys) const {
    if (!(keys & CALLS_ANEW).empty()) {
      return true;
    }
    const auto autocast = keys & c10::autocast_dispatch_keyset;
    if (!autocast.empty() && has_kernel(autocast.highestPriorityTypeId())) {
      return true;
    }
    const auto autograd = keys & c10::autograd_dispatch_keyset;
    if (autograd.empty()) {
      return false;
    }
    if (!is_composite) {
      return ends_in_autograd;
    }
    return !handle->hasKernelForAnyDispatchKey(c10::getBackendKeySetFromAutograd(autograd.highestPriorityTypeId()));
  }
};

// All ops that were seen, of the process.
class Table {
 public:
  const Op* find(const at::RecordFunction& call) {
    const auto named = call.operator_name();
    // with the address: an op that was taken away and defined again is another one, with another handle
    const std::string key = named ? named->name + "." + named->overload_name + "@" + address_of(call.name()) : "";
    const std::lock_guard lock(mutex_);
    auto [at, is_new] = by_name_.try_emplace(key, nullptr);
    if (is_new) {
      all_.push_back(describe(static_cast<int64_t>(all_.size()), named));
      at->second = &all_.back();
    }
    return at->second;
  }

  const Op* at(int64_t index) {
    const std::lock_guard lock(mutex_);
    return &all_[index];
  }

 private:
  static std::string address_of(const char* name) {
    return std::to_string(reinterpret_cast<uintptr_t>(name));
  }

  static Op describe(int64_t index, const std::optional<c10::OperatorName>& named) {
    if (!named) {
      return Op{index, "", "", std::nullopt};
    }
    Op op{index, named->name, named->overload_name, c10::Dispatcher::singleton().findOp(*named)};
    if (op.handle) {
      op.ends_in_autograd = op.name == "aten::detach_"; // the one in VariableTypeManual.cpp that doesn't dispatch again
      op.is_composite = op.has_kernel(DispatchKey::CompositeImplicitAutograd) &&
          !op.has_kernel(DispatchKey::CompositeExplicitAutograd);
      op.is_own_autograd = op.name.rfind("aten::", 0) != 0 &&
          (op.has_kernel(DispatchKey::Autograd) || op.has_kernel(DispatchKey::AutogradCPU) ||
           op.has_kernel(DispatchKey::AutogradCUDA));
    }
    return op;
  }

  std::mutex mutex_;
  std::deque<Op> all_; // addresses stay
  std::unordered_map<std::string, const Op*> by_name_;
};

} // namespace ops
