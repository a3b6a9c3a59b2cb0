// The launches of a file alone: finds them by their categories' names, and decodes nothing else. See ../cut.py, whose
// rules these are. Threads begin as soon as it is made, while Python is still importing.
#pragma once

#include "section.h"

#include <atomic>
#include <cerrno>
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

  // Fills `text` from a place on; it is shorter only at the file's end.
  void read(std::string& text, size_t place) const {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = ::pread(number_, text.data() + done, text.size() - done, static_cast<off_t>(place + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      expect(got >= 0);
      if (got == 0) {
        break;
      }
      done += static_cast<size_t>(got);
    }
    text.resize(done);
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

// Decodes the launches among the events of a text that ends with a separator.
inline std::shared_ptr<Section> read_launches(std::string_view text, const Separator& between) {
  auto section = std::make_shared<Section>(uint32_t(1) << LAUNCHES, 0);
  EventDecoder decoder(section->rows);
  Event event;
  size_t at = find_needle(text, 0);
  while (at != text.npos) {
    const size_t before = text.substr(0, at).rfind(between.text), behind = text.find(between.text, at);
    expect(behind != text.npos);
    const size_t begin = before == text.npos ? 0 : before + between.opening, end = behind + between.close;
    Cursor cursor(text.data() + begin, text.data() + end);
    cursor.skip_space();
    const int category = decoder.read(cursor, event);
    expect(cursor.at() == text.data() + end);
    if (category == FOREIGN) {
      expect(event.values[Event::CATEGORY].empty() || !is_other_launch(event.plain(Event::CATEGORY)));
    } else if (CATEGORIES[category].kind == Kind::LAUNCH) {
      section->count(category);
    }
    at = find_needle(text, end);
  }
  section->end_batch();
  return section;
}

// What is to be read: the events begin at `begin`, and those that begin at `end` or later are left. Each range is read by
// itself; its last event ends less than `behind` bytes behind it.
struct Extent {
  size_t begin, end, range, behind;

  size_t ranges() const {
    return (end - begin + range - 1) / range;
  }
};

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
      std::string text;
      for (size_t number = next_++; number < parts_.size() && !is_over_; number = next_++) {
        parts_[number] = read(number, text);
      }
    } catch (const Unusual&) {
      is_over_ = true;
    } catch (const std::exception&) { // memory ran out
      is_over_ = true;
    }
  }

  // From the first separator in a range, or the first event, to the first separator behind the range.
  std::shared_ptr<Section> read(size_t number, std::string& text) {
    const size_t begin = extent_.begin + number * extent_.range, end = std::min(begin + extent_.range, extent_.end);
    text.resize(end - begin + extent_.behind);
    file_.read(text, begin);
    const size_t first = number == 0 ? 0 : text.find(between_.text), last = text.find(between_.text, end - begin);
    expect(first != text.npos && last != text.npos);
    if (number + 1 == parts_.size()) {
      rest_ = begin + last;
    }
    return read_launches(std::string_view(text).substr(first, last + between_.text.size() - first), between_);
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
