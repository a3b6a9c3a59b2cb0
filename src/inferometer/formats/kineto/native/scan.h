// The launches of a file alone: finds them by their categories' names, and decodes nothing else. See ../cut.py, whose
// rules these are. Threads begin as soon as it is made, while Python is still importing.
#pragma once

#include "section.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace kineto {

// A file that is open for reading.
class File {
 public:
  explicit File(const char* path) : number_(::open(path, O_RDONLY | O_CLOEXEC)) {
    expect(number_ >= 0);
  }
  ~File() {
    ::close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Reads so many bytes from a place on; fewer only at the file's end.
  size_t read(char* to, size_t size, size_t place) const {
    size_t done = 0;
    while (done < size) {
      const ssize_t got = ::pread(number_, to + done, size - done, static_cast<off_t>(place + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      expect(got >= 0);
      if (got == 0) {
        break;
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  int number_;
};

// What stands between two events: the first ends `close` bytes into it, the second begins at `opening`.
struct Separator {
  std::string text;
  size_t close, opening;
};

// What each launch's category begins with, in the text.
constexpr std::string_view NEEDLES[] = {"\"kernel\"", "\"gpu_mem", "\"mtia_ccp_events\""};

inline bool is_needle(std::string_view text, size_t at) {
  return std::any_of(std::begin(NEEDLES), std::end(NEEDLES), [&](std::string_view needle) {
    return text.compare(at, needle.size(), needle) == 0;
  });
}

// Where a needle first stands from `at` on; `npos` where none does. Blocks that have no needle's first two bytes are passed
// at once: compilers make a few instructions of that loop.
inline size_t find_needle(std::string_view text, size_t at) {
  constexpr size_t BLOCK = 64;
  for (; at + BLOCK < text.size(); at += BLOCK) {
    const char* block = text.data() + at;
    unsigned char may_begin = 0;
    for (size_t i = 0; i < BLOCK; ++i) {
      const char next = block[i + 1];
      may_begin |= (block[i] == '"') & ((next == 'k') | (next == 'g') | (next == 'm'));
    }
    if (may_begin) {
      for (size_t i = at; i < at + BLOCK; ++i) {
        if (text[i] == '"' && is_needle(text, i)) {
          return i;
        }
      }
    }
  }
  for (; at < text.size(); ++at) {
    if (text[at] == '"' && is_needle(text, at)) {
      return at;
    }
  }
  return text.npos;
}

// Whether Python makes launches of a category that isn't known here: an older PyTorch's spelling, another device's.
inline bool is_other_launch(std::string_view category) {
  std::string lower(category);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char byte) { return std::tolower(byte); });
  constexpr std::string_view NAMES[] = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events"};
  return std::find(std::begin(NAMES), std::end(NAMES), lower) != std::end(NAMES);
}

// Decodes the launches among events.
class LaunchDecoder {
 public:
  explicit LaunchDecoder(const Separator& between) : between_(between), decoder_(section_->rows) {}

  // Those of a text that ends with a separator.
  void add(std::string_view text) {
    size_t at = find_needle(text, 0);
    while (at != text.npos) {
      const size_t before = text.substr(0, at).rfind(between_.text), behind = text.find(between_.text, at);
      expect(behind != text.npos);
      const size_t begin = before == text.npos ? 0 : before + between_.opening, end = behind + between_.close;
      Cursor cursor(text.data() + begin, text.data() + end);
      cursor.skip_space();
      const int category = decoder_.read(cursor, event_);
      expect(cursor.at() == text.data() + end);
      if (category == FOREIGN) {
        expect(event_.values[Event::CATEGORY].empty() || !is_other_launch(event_.plain(Event::CATEGORY)));
      } else if (CATEGORIES[category].kind == Kind::LAUNCH) {
        section_->count(category);
      }
      at = find_needle(text, end);
    }
  }

  // All of them; nothing is added any more.
  std::shared_ptr<Section> finish() {
    section_->end_batch();
    return std::move(section_);
  }

 private:
  const Separator& between_;
  std::shared_ptr<Section> section_ = std::make_shared<Section>(uint32_t(1) << LAUNCHES, 0);
  EventDecoder decoder_;
  Event event_;
};

// What is to be read: the events begin at `begin`, and those that begin at `end` or later are left. Each range is read by
// itself; its last event ends less than `behind` bytes behind it.
struct Extent {
  size_t begin, end, range, behind;

  size_t ranges() const {
    return (end - begin + range - 1) / range;
  }
};

constexpr size_t WINDOW_BYTES = size_t(1) << 20;

class LaunchScan {
 public:
  LaunchScan(const char* path, Extent extent, Separator between, unsigned threads)
      : file_(path), extent_(extent), between_(std::move(between)), parts_(extent.ranges()) {
    try {
      for (unsigned i = 0; i < threads; ++i) {
        threads_.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
      expect(!threads_.empty()); // fewer do it, too
    }
  }

  ~LaunchScan() {
    is_over_ = true;
    join();
  }

  // Whether all was as usual, once all is read.
  bool wait() {
    join();
    return !is_over_;
  }

  const std::vector<std::shared_ptr<Section>>& parts() const {
    return parts_;
  }

  // Where the first separator stands that wasn't read.
  size_t rest() const {
    return rest_;
  }

 private:
  void join() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  void work() {
    try {
      std::string window;
      for (size_t number = next_++; number < parts_.size() && !is_over_; number = next_++) {
        parts_[number] = read(number, window);
      }
    } catch (const Unusual&) {
      is_over_ = true;
    } catch (const std::exception&) { // memory ran out
      is_over_ = true;
    }
  }

  // From the first separator in a range, or the first event, to the first separator behind the range. The window moves
  // over the text from separator to separator: it is so small that what it reads is still in the core's cache.
  std::shared_ptr<Section> read(size_t number, std::string& window) {
    const size_t begin = extent_.begin + number * extent_.range, end = std::min(begin + extent_.range, extent_.end);
    const size_t most = end + extent_.behind;
    LaunchDecoder launches(between_);
    bool is_begun = number == 0;
    for (size_t at = begin, held = 0;;) {
      const size_t more = std::min(WINDOW_BYTES, most - at - held);
      window.resize(std::max(window.size(), held + more));
      const size_t got = file_.read(window.data() + held, more, at + held);
      held += got;
      const std::string_view text(window.data(), held);
      const size_t first = is_begun ? 0 : text.find(between_.text);
      const size_t last = text.find(between_.text, std::max(at, end) - at);
      if (first != text.npos && last != text.npos) {
        launches.add(text.substr(first, last + between_.text.size() - first));
        if (number + 1 == parts_.size()) {
          rest_ = at + last;
        }
        return launches.finish();
      }
      expect(got == more && at + held < most && !is_over_);
      const size_t left = first == text.npos ? first : text.rfind(between_.text);
      if (left == text.npos || left == first) { // one event is longer than the window
        continue;
      }
      launches.add(text.substr(first, left + between_.text.size() - first));
      is_begun = true;
      std::memmove(window.data(), window.data() + left, held - left);
      at += left;
      held -= left;
    }
  }

  const File file_;
  const Extent extent_;
  const Separator between_;
  std::vector<std::shared_ptr<Section>> parts_;
  std::atomic<size_t> next_{0}, rest_{0};
  std::atomic<bool> is_over_{false}; // something was unusual, or nobody waits any more
  std::vector<std::thread> threads_;
};

} // namespace kineto
