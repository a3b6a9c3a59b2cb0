// What one thread has recorded and not yet handed over, and what is open on it. See `lanes.py`, whose twin this is.
//
// A lane's lock is taken by its own thread for each op, and by who hands rows over for as long as it takes to swap them.
// It is never held while the GIL is waited for: who hands over has the GIL.
#pragma once

#include "calls.h"
#include "frames.h"
#include "ops.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace lanes {

enum Flag : uint32_t { LEAF = 1, ON_CPU = 2, SHARES_MEMORY = 4, FAILED = 8 };

constexpr int64_t SPLIT_NS = 500'000'000; // how often long ranges of functions are cut, to be handed over

// Rows as Python reads them, by numpy.
struct OpRow {
  int64_t start_ns, end_ns;
  uint32_t call, flags;
};
struct RangeRow {
  int64_t start_ns, end_ns;
  int64_t name; // of a frame: its code's address; of a module: its text's number
};

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A bounded buffer of rows; what doesn't fit is counted.
template <typename Row>
class Rows {
 public:
  explicit Rows(size_t most) : most_(most) {}

  void add(const Row& row) {
    if (rows_.size() < most_) {
      rows_.push_back(row);
    } else {
      ++lost_;
    }
  }

  bool is_half_full() const {
    return 2 * rows_.size() > most_;
  }

  std::vector<Row> take() {
    std::vector<Row> fresh;
    fresh.reserve(std::min(rows_.size(), most_)); // about as many as now: no thread waits for memory while it grows
    fresh.swap(rows_);
    return fresh;
  }

  size_t take_lost() {
    return std::exchange(lost_, 0);
  }

 private:
  size_t most_;
  size_t lost_ = 0;
  std::vector<Row> rows_;
};

// A function of the user's on the stack. `at`: the instruction in it that calls on; null for the innermost.
struct Step {
  const frames::Frame* frame;
  PyCodeObject* code;
  const void* at;

  bool operator==(const Step& other) const {
    return frame == other.frame && code == other.code && at == other.at;
  }
};

using Chain = std::vector<Step>; // innermost first

struct OpenFrame {
  Step step;
  int64_t start_ns;
};

// A module call that is open: who calls it holds the module. The rest stood on the lane when it began.
struct Level {
  PyObject* module;
  int64_t text, number, start_ns;
  Chain chain;
  std::vector<OpenFrame> open;
  const frames::Frame* boundary;
};

// An op that has begun and not ended.
struct OpenOp;

// An op as this thread knows it. `inner_calls`: what the last call of it called inside that PyTorch reported, too.
struct KnownOp {
  const ops::Op* op = nullptr;
  uint32_t inner_calls = 0;
};

// Which code objects are the user's, as this thread has learned it: by open addressing, since it is asked for each frame
// of each op.
class Codes {
 public:
  enum Answer : uint8_t { UNKNOWN, OWN, OTHER };

  Answer find(const PyCodeObject* code) const {
    return places_[slot_of(code)].answer;
  }

  void set(const PyCodeObject* code, bool is_own) {
    if (2 * ++held_ > places_.size()) {
      std::vector<Place> old(2 * places_.size());
      old.swap(places_);
      for (const Place& place : old) {
        if (place.code != nullptr) {
          places_[slot_of(place.code)] = place;
        }
      }
    }
    places_[slot_of(code)] = {code, is_own ? OWN : OTHER};
  }

 private:
  struct Place {
    const PyCodeObject* code = nullptr; // null: free
    Answer answer = UNKNOWN;
  };

  size_t slot_of(const PyCodeObject* code) const {
    const size_t mask = places_.size() - 1;
    size_t slot = (reinterpret_cast<uintptr_t>(code) >> 4) * 0x9E3779B97F4A7C15ull >> 32 & mask;
    while (places_[slot].code != nullptr && places_[slot].code != code) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  std::vector<Place> places_ = std::vector<Place>(256); // its size is a power of two
  size_t held_ = 0;
};

struct Lane {
  Lane(int64_t thread, size_t most, bool has_frames)
      : thread(thread), has_frames(has_frames), op_rows(most), frame_rows(most), module_rows(most) {}

  const int64_t thread;
  const bool has_frames;
  std::mutex lock;
  bool is_over = false; // the thread has ended, or the recording

  Rows<OpRow> op_rows;
  Rows<RangeRow> frame_rows, module_rows;
  calls::Calls calls;
  size_t open_ops = 0;

  OpenOp* hiding = nullptr; // the open op within which calls aren't ops
  int64_t last_ns = 0; // the end of the last op or module
  int64_t split_ns = 0; // when the user's functions get a new range, if no module is open
  Chain chain;
  std::vector<OpenFrame> open;
  const frames::Frame* boundary = nullptr; // below it the user's functions belong to the innermost module
  std::vector<Level> levels;

  // Used by its own thread alone.
  std::unordered_map<const char*, KnownOp> ops_by_name;
  calls::Words words;
  Chain walked;
  Codes codes;

  void close_frames(size_t keep = 0) {
    while (open.size() > keep) {
      const OpenFrame& last = open.back();
      frame_rows.add({last.start_ns, std::max(last_ns, last.start_ns), reinterpret_cast<int64_t>(last.step.code)});
      open.pop_back();
    }
    if (keep == 0) {
      chain.clear();
    }
  }

  // A module is called; `caller`: the frame below which the user's functions belong to it.
  void enter(PyObject* module, int64_t text, int64_t number, const frames::Frame* caller) {
    levels.push_back({module, text, number, now_ns(), std::move(chain), std::move(open), boundary});
    chain.clear();
    open.clear();
    boundary = caller;
  }

  // The call of this number is over, and with it those within it; none, if it began before the recording.
  void leave(int64_t number, int64_t end_ns) {
    const auto is_this = [number](const Level& level) { return level.number == number; };
    if (std::any_of(levels.rbegin(), levels.rend(), is_this)) {
      while (levels.back().number != number) {
        leave(end_ns);
      }
      leave(end_ns);
    }
  }

  // The innermost module's call is over.
  void leave(int64_t end_ns) {
    close_frames();
    Level& level = levels.back();
    module_rows.add({level.start_ns, end_ns, level.text});
    chain = std::move(level.chain);
    open = std::move(level.open);
    boundary = level.boundary;
    levels.pop_back();
    last_ns = end_ns;
  }

  void finish() {
    is_over = true;
    const int64_t end_ns = now_ns();
    while (!levels.empty()) {
      leave(end_ns);
    }
    close_frames();
  }

  // The user's functions from `frame` on down to the innermost open module are open from now on, and no others.
  // False: a code object isn't known yet, it is `unknown`; nothing was changed.
  bool follow(const frames::Frame* frame, PyCodeObject*& unknown) {
    const frames::Frame* top = frame;
    walked.clear();
    for (; frame != nullptr && frame != boundary; frame = frames::caller_of(frame)) {
      PyCodeObject* code = frames::code_of(frame);
      const auto answer = codes.find(code);
      if (answer == Codes::UNKNOWN) {
        unknown = code;
        return false;
      }
      if (answer == Codes::OWN) {
        walked.push_back({frame, code, walked.empty() ? nullptr : frames::instruction_of(frame)});
      }
    }
    if (frame == nullptr && boundary != nullptr) {
      unwind(top);
      return follow(top, unknown);
    }
    if (walked != chain) {
      change();
    }
    return true;
  }

 private:
  // End modules that are no longer on the stack: a coroutine of C code (a greenlet) left it for another.
  void unwind(const frames::Frame* top) {
    const auto is_on_stack = [top](const frames::Frame* wanted) {
      for (auto frame = top; frame != nullptr; frame = frames::caller_of(frame)) {
        if (frame == wanted) {
          return true;
        }
      }
      return wanted == nullptr;
    };
    while (!levels.empty() && !is_on_stack(boundary)) {
      leave(last_ns);
    }
  }

  // Close what is left, open what is new; those opened together begin one ns apart, outermost first.
  void change() {
    size_t same = 0;
    for (auto step = walked.rbegin(); step != walked.rend() && same < open.size(); ++step) {
      Step& old = open[same].step;
      if (old.frame != step->frame || old.code != step->code) {
        break;
      }
      const void* old_at = std::exchange(old.at, step->at);
      ++same;
      if (old_at != nullptr && step->at != nullptr && old_at != step->at) {
        break; // the function that it called from there is over
      }
    }
    close_frames(same);
    int64_t start_ns = now_ns() - static_cast<int64_t>(walked.size() - same);
    for (auto step = walked.rbegin() + same; step != walked.rend(); ++step) {
      open.push_back({*step, ++start_ns});
    }
    chain = walked;
  }
};

} // namespace lanes
