// The two callbacks that PyTorch calls as an op begins and ends, on the thread that runs it.
//
// An op's kernel calls the dispatcher many times more, and PyTorch makes arguments ready for an observer each time, which
// costs more than all that is done here. So within an op that is known to do that, observers are off on this thread,
// unless there are others than this one.
#pragma once

#include "observation.h"

#include <exception>

// An op that has begun.
struct lanes::OpenOp : at::ObserverContext {
  std::shared_ptr<Lane> lane;
  KnownOp* known = nullptr;
  bool may_call_itself = false;
  bool is_seen = true;
  bool is_alone = false; // observers are off within it
  uint32_t call = 0;
  uint32_t inner_calls = 0;
  int exceptions = 0;
  int64_t start_ns = 0;
  calls::Gathered inputs;
};

namespace op_calls {

using lanes::KnownOp;
using lanes::Lane;
using lanes::OpenOp;

constexpr uint32_t MANY = 4; // calls inside an op: to turn observers off and on costs as much as three of them

inline KnownOp& known_op(Lane& lane, const at::RecordFunction& call) {
  KnownOp& known = lane.ops_by_name[call.name()];
  if (known.op == nullptr || !known.op->is_called(call)) {
    known = {observations::now->ops.find(call), 0};
  }
  return known;
}

// Whether this call of an op is one to the recording. Gathers its keys, and describes it in `lane.words`.
inline bool is_op(Lane& lane, const ops::Op& op, const at::RecordFunction& call, calls::Gathered& inputs) {
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

inline bool is_only_observer() {
  const auto all = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  return all && all->callbacks_.size() == 1;
}

inline std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  Lane* lane = observations::lane_here();
  if (lane == nullptr) {
    return nullptr;
  }
  OpenOp* around = lane->hiding;
  if (around != nullptr && !around->may_call_itself) {
    ++around->inner_calls;
    return nullptr;
  }
  if (c10::impl::dispatch_mode_enabled() || c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python)) {
    return nullptr; // a mode will call what it makes of it; without the key nothing asks a mode
  }
  KnownOp& known = known_op(*lane, call);
  const ops::Op& op = *known.op;
  if (!op.handle || (around != nullptr && around->known->op != &op)) {
    return nullptr;
  }
  calls::Gathered inputs;
  if (!is_op(*lane, op, call, inputs)) {
    return nullptr;
  }
  auto opened = std::make_unique<OpenOp>();
  opened->inputs = inputs;
  if (around != nullptr) {
    around->is_seen = false; // an autograd function that calls its op below autograd: that one is the op
  }
  opened->known = &known;
  opened->may_call_itself = op.is_own_autograd && !(inputs.keys & c10::autograd_dispatch_keyset).empty();
  opened->exceptions = std::uncaught_exceptions();
  const bool is_subclass = inputs.keys.has(c10::DispatchKey::Python); // whose handler calls ops of its own
  const bool hides_all = !is_subclass && !opened->may_call_itself;
  std::unique_lock lock(lane->lock);
  if (lane->is_over) {
    return nullptr;
  }
  if (lane->has_frames) {
    observations::follow(*lane, lock, frames::current());
  }
  opened->lane = observations::held.lane;
  opened->call = lane->calls.find(lane->words);
  lane->hiding = is_subclass ? nullptr : opened.get();
  ++lane->open_ops;
  lock.unlock();
  if (hides_all && known.inner_calls >= MANY && is_only_observer()) {
    opened->is_alone = true;
    at::enableRecordFunction(false);
  }
  opened->start_ns = lanes::now_ns();
  return opened;
}

// The first tensor of a result; null where there is none.
inline const at::TensorImpl* first_tensor(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto* tensor = value.unsafeToTensorImpl();
    return tensor == c10::UndefinedTensorImpl::singleton() ? nullptr : tensor;
  }
  if (value.isList()) {
    for (const auto& each : value.toListRef()) {
      if (const auto* found = first_tensor(each)) {
        return found;
      }
    }
  }
  return nullptr;
}

inline uint32_t flags_of(const OpenOp& op, const at::RecordFunction& call, bool is_leaf) {
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

inline void end(const at::RecordFunction& call, at::ObserverContext* context) {
  auto* op = static_cast<OpenOp*>(context);
  if (op == nullptr) {
    return;
  }
  const int64_t end_ns = lanes::now_ns();
  if (op->is_alone) {
    at::enableRecordFunction(true);
  } else {
    op->known->inner_calls = op->inner_calls;
  }
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
  if (is_wanted && !observations::now->is_wanted.exchange(true)) {
    observations::now->wanted.notify_all();
  }
}

} // namespace op_calls
