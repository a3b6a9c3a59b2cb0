// What ops are called with, as numbers: equal calls of an op are one `Call`, which is described once.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace calls {

enum Tag : int64_t { NOTHING, TENSOR, INTEGER, NUMBER, COMPLEX, BOOLEAN, LIST, UNREAD };

// One description: the op's place in the table of ops, then of each argument its tag and what belongs to it.
using Words = std::vector<int64_t>;

inline int64_t bits(double value) {
  int64_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

inline double number(int64_t word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// What the inputs of a call are together, gathered while they are described.
struct Gathered {
  c10::DispatchKeySet keys;
  bool has_tensor = false;
  bool is_on_cpu = true; // of the first tensor
  static constexpr size_t MOST = 16;
  size_t storages = 0;
  const void* storage[MOST]; // of tensors that are arguments themselves, not in lists
};

inline const void* storage_of(const at::TensorImpl* tensor) {
  return tensor->has_storage() ? tensor->unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

class Describer {
 public:
  Describer(Words& words, Gathered& gathered) : words_(words), gathered_(gathered) {}

  // False when an input can't be described: it has no strides, or symbols for sizes.
  bool add(const c10::IValue& value, bool is_direct = true) {
    if (value.isTensor()) {
      return add_tensor(value.unsafeToTensorImpl(), is_direct);
    }
    if (value.isNone()) {
      put(NOTHING);
    } else if (value.isInt()) {
      put(INTEGER, value.toInt());
    } else if (value.isDouble()) {
      put(NUMBER, bits(value.toDouble()));
    } else if (value.isBool()) {
      put(BOOLEAN, value.toBool());
    } else if (value.isComplexDouble()) {
      const auto both = value.toComplexDouble();
      put(COMPLEX, bits(both.real()));
      words_.push_back(bits(both.imag()));
    } else if (value.isSymInt()) {
      const auto known = value.toSymInt().maybe_as_int();
      if (!known) {
        return false;
      }
      put(INTEGER, *known);
    } else if (value.isList()) {
      return add_list(value.toListRef());
    } else {
      put(NOTHING); // text, a device, a generator
    }
    return true;
  }

 private:
  template <typename... More>
  void put(Tag tag, More... more) {
    words_.push_back(tag);
    (words_.push_back(static_cast<int64_t>(more)), ...);
  }

  bool add_list(c10::ArrayRef<c10::IValue> list) {
    put(LIST, list.size());
    bool is_whole = true;
    for (const auto& each : list) {
      is_whole = add(each, false) && is_whole; // to the end: the keys of all tensors are wanted
    }
    return is_whole;
  }

  bool add_tensor(const at::TensorImpl* tensor, bool is_direct) {
    if (tensor == c10::UndefinedTensorImpl::singleton()) {
      put(NOTHING);
      return true;
    }
    gathered_.keys = gathered_.keys | tensor->key_set();
    if (!gathered_.has_tensor) {
      gathered_.has_tensor = true;
      gathered_.is_on_cpu = tensor->is_cpu();
    }
    if (is_direct && gathered_.storages < Gathered::MOST) {
      gathered_.storage[gathered_.storages++] = storage_of(tensor);
    }
    if (tensor->is_wrapped_number() && add_wrapped_number(tensor)) {
      return true;
    }
    if (tensor->layout() != c10::kStrided || tensor->is_nested() || tensor->has_symbolic_sizes_strides()) {
      return false;
    }
    const auto sizes = tensor->sizes();
    const auto strides = tensor->strides();
    put(TENSOR, c10::typeMetaToScalarType(tensor->dtype()), sizes.size());
    words_.insert(words_.end(), sizes.begin(), sizes.end());
    words_.insert(words_.end(), strides.begin(), strides.end());
    return true;
  }

  // A number that PyTorch made a tensor of, as in `x * 2`: it is what the program gave.
  bool add_wrapped_number(const at::TensorImpl* tensor) {
    if (!tensor->is_cpu() || !tensor->has_storage() || tensor->data() == nullptr || tensor->numel() != 1) {
      return false;
    }
    const void* data = tensor->data();
    switch (c10::typeMetaToScalarType(tensor->dtype())) {
      case c10::ScalarType::Double:
        put(NUMBER, bits(*static_cast<const double*>(data)));
        return true;
      case c10::ScalarType::Long:
        put(INTEGER, *static_cast<const int64_t*>(data));
        return true;
      case c10::ScalarType::Bool:
        put(BOOLEAN, *static_cast<const bool*>(data));
        return true;
      case c10::ScalarType::ComplexDouble: {
        const auto both = *static_cast<const c10::complex<double>*>(data);
        put(COMPLEX, bits(both.real()), bits(both.imag()));
        return true;
      }
      default:
        return false;
    }
  }

  Words& words_;
  Gathered& gathered_;
};

// The calls that one thread has made, numbered in the order in which they were first seen. After `MOST` of them the table
// begins anew, the numbers go on: a decoder's shapes differ in each step.
class Calls {
 public:
  static constexpr uint32_t MOST = 20'000;

  struct Described {
    uint32_t number;
    Words words;
  };

  // The number of the call that `words` describe.
  uint32_t find(const Words& words) {
    if (held_ >= MOST) {
      clear();
    }
    if (2 * (held_ + 1) > places_.size()) {
      grow();
    }
    const uint64_t hash = hash_of(words);
    Place& place = places_[slot_of(hash, words)];
    if (place.length == 0) {
      place = {hash, all_.size(), static_cast<uint32_t>(words.size()), next_++};
      all_.insert(all_.end(), words.begin(), words.end());
      fresh_.push_back({place.number, words});
      ++held_;
    }
    return place.number;
  }

  // Those that were first seen since the last time.
  std::vector<Described> take_fresh() {
    return std::exchange(fresh_, {});
  }

  // No call before this number is seen again.
  uint32_t first() const {
    return first_;
  }

 private:
  struct Place {
    uint64_t hash;
    size_t begin;
    uint32_t length; // 0: free
    uint32_t number;
  };

  static uint64_t hash_of(const Words& words) {
    uint64_t hash = words.size();
    for (const int64_t word : words) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }

  size_t slot_of(uint64_t hash, const Words& words) const {
    size_t slot = hash & (places_.size() - 1);
    for (; places_[slot].length != 0; slot = (slot + 1) & (places_.size() - 1)) {
      const Place& place = places_[slot];
      if (place.hash == hash && place.length == words.size() &&
          std::memcmp(&all_[place.begin], words.data(), sizeof(int64_t) * words.size()) == 0) {
        break;
      }
    }
    return slot;
  }

  void grow() {
    std::vector<Place> old(places_.empty() ? 256 : 2 * places_.size(), Place{});
    old.swap(places_);
    for (const Place& place : old) {
      if (place.length != 0) {
        size_t slot = place.hash & (places_.size() - 1);
        while (places_[slot].length != 0) {
          slot = (slot + 1) & (places_.size() - 1);
        }
        places_[slot] = place;
      }
    }
  }

  void clear() {
    std::fill(places_.begin(), places_.end(), Place{});
    all_.clear();
    held_ = 0;
    first_ = next_;
  }

  std::vector<Place> places_; // open addressing; its size is a power of two
  Words all_;
  std::vector<Described> fresh_;
  uint32_t held_ = 0;
  uint32_t first_ = 0;
  uint32_t next_ = 0;
};

} // namespace calls
