// The different texts of a column, each kept once.
#pragma once

#include "json.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kineto {

// An entry of Arrow's layout of texts by view: up to 12 bytes stand in it, longer ones in a buffer.
struct View {
  int32_t size;
  char head[4];
  int32_t buffer, offset;
};
static_assert(sizeof(View) == 16);

class Texts {
 public:
  using Code = uint32_t;

  // The text's number, from 0 on in order of first use.
  Code code_of(std::string_view text) {
    const uint64_t hash = hash_of(text);
    size_t slot = hash & (slots_.size() - 1);
    for (int tries = 0; slots_[slot].hash != 0; ++tries) {
      if (slots_[slot].hash == hash && (*this)[slots_[slot].code] == text) {
        return slots_[slot].code;
      }
      expect(tries < MOST_TRIES);
      slot = (slot + 1) & (slots_.size() - 1);
    }
    expect(text.size() <= MOST_BYTES - bytes_.size());
    const Code code = static_cast<Code>(places_.size());
    places_.push_back({bytes_.size(), text.size()});
    bytes_.append(text);
    slots_[slot] = {hash, code};
    if (2 * places_.size() > slots_.size()) {
      grow();
    }
    return code;
  }

  std::string_view operator[](Code code) const {
    return std::string_view(bytes_).substr(places_[code].begin, places_[code].size);
  }

  size_t size() const {
    return places_.size();
  }

  const std::string& bytes() const {
    return bytes_;
  }

  View view_of(Code code) const {
    const std::string_view text = (*this)[code];
    View view = {static_cast<int32_t>(text.size()), {}, 0, 0};
    if (text.size() <= sizeof(View) - offsetof(View, head)) {
      std::memcpy(view.head, text.data(), text.size());
    } else {
      std::memcpy(view.head, text.data(), sizeof(view.head));
      view.offset = static_cast<int32_t>(places_[code].begin);
    }
    return view;
  }

 private:
  static constexpr int MOST_TRIES = 256; // more have texts that were made to collide
  static constexpr size_t MOST_BYTES = INT32_MAX; // what a view's place can name

  struct Place {
    size_t begin, size;
  };
  struct Slot {
    uint64_t hash = 0; // 0: free
    Code code = 0;
  };

  static uint64_t hash_of(std::string_view text) {
    constexpr uint64_t FACTOR = 0x9E3779B97F4A7C15;
    uint64_t hash = text.size() + 1;
    const auto mix = [&hash](uint64_t word) {
      hash = (hash ^ word) * FACTOR;
      hash ^= hash >> 29;
    };
    size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
      uint64_t word;
      std::memcpy(&word, text.data() + i, 8);
      mix(word);
    }
    uint64_t rest = 0;
    std::memcpy(&rest, text.data() + i, text.size() - i);
    mix(rest);
    return hash | 1;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& each : old) {
      if (each.hash != 0) {
        size_t slot = each.hash & (slots_.size() - 1);
        while (slots_[slot].hash != 0) {
          slot = (slot + 1) & (slots_.size() - 1);
        }
        slots_[slot] = each;
      }
    }
  }

  std::string bytes_;
  std::vector<Place> places_;
  std::vector<Slot> slots_ = std::vector<Slot>(64); // its size is a power of two
};

} // namespace kineto
