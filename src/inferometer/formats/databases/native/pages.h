// A database of SQLite as a file of pages, and the pages that hold a table's rows, in their order.
//
// Source of the layout: https://www.sqlite.org/fileformat2.html.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sqlite {

// What isn't as SQLite usually writes it: SQLite itself must have a look.
struct Unusual : std::exception {};

inline void expect(bool is_usual) {
  if (!is_usual) {
    throw Unusual();
  }
}

using Bytes = const uint8_t*;

inline uint32_t big_endian(Bytes at, int bytes) {
  uint32_t number = 0;
  for (int i = 0; i < bytes; ++i) {
    number = number << 8 | at[i];
  }
  return number;
}

// Up to nine bytes, seven bits each, of the last one eight.
inline uint64_t varint(Bytes& at, Bytes end) {
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) {
    expect(at < end);
    const uint8_t byte = *at++;
    number = number << 7 | (byte & 0x7F);
    if (byte < 0x80) {
      return number;
    }
  }
  expect(at < end);
  return number << 8 | *at++;
}

constexpr size_t HEADER_BYTES = 100; // of the file; the first page begins with it
constexpr uint8_t INTERIOR = 5, LEAF = 13; // pages of a table
constexpr size_t INTERIOR_BYTES = 12, LEAF_BYTES = 8; // of their headers
constexpr int DEEPEST = 20;

// A page of a table.
struct Page {
  Bytes start, end, header, pointers;
  uint8_t kind;
  uint32_t cells;

  Page(Bytes page, size_t usable, bool is_first)
      : start(page), end(page + usable), header(page + (is_first ? HEADER_BYTES : 0)), kind(header[0]),
        cells(big_endian(header + 3, 2)) {
    expect(kind == INTERIOR || kind == LEAF);
    pointers = header + (kind == INTERIOR ? INTERIOR_BYTES : LEAF_BYTES);
    expect(2 * size_t(cells) <= static_cast<size_t>(end - pointers));
  }

  // Where a cell begins.
  Bytes cell(uint32_t number) const {
    const uint32_t offset = big_endian(pointers + 2 * size_t(number), 2);
    expect(offset >= static_cast<size_t>(pointers - start) + 2 * size_t(cells) && offset < end - start);
    return start + offset;
  }
};

// The file, which is read by copies: one that is cut while it is read ends no process.
class Database {
 public:
  explicit Database(const char* path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {
    try {
      inspect();
    } catch (...) {
      close_file();
      throw;
    }
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    close_file();
  }

  size_t page_bytes() const {
    return page_bytes_;
  }
  size_t usable() const {
    return usable_;
  }
  size_t pages() const {
    return pages_;
  }

  // Copies `count` pages from number `first` on, counted from 1.
  void copy(uint32_t first, size_t count, uint8_t* target) const {
    expect(first >= 1 && first <= pages_ && count <= pages_ - (first - 1));
    read_at(target, count * page_bytes_, size_t(first - 1) * page_bytes_);
  }

 private:
  void inspect() {
    struct stat about = {};
    expect(file_ >= 0 && fstat(file_, &about) == 0);
    uint8_t header[HEADER_BYTES];
    read_at(header, HEADER_BYTES, 0);
    page_bytes_ = big_endian(header + 16, 2);
    page_bytes_ = page_bytes_ == 1 ? 65'536 : page_bytes_;
    const bool has_log = header[18] != 1 || header[19] != 1; // pages may stand in another file
    expect(page_bytes_ >= 512 && (page_bytes_ & (page_bytes_ - 1)) == 0 && !has_log);
    usable_ = page_bytes_ - header[20];
    expect(usable_ >= 480);
    pages_ = static_cast<size_t>(about.st_size) / page_bytes_;
  }

  void read_at(uint8_t* target, size_t size, size_t offset) const {
    while (size > 0) {
      const ssize_t got = pread(file_, target, size, static_cast<off_t>(offset));
      expect(got > 0);
      target += got;
      offset += static_cast<size_t>(got);
      size -= static_cast<size_t>(got);
    }
  }

  void close_file() {
    if (file_ >= 0) {
      close(file_);
    }
  }

  int file_;
  size_t page_bytes_ = 0, usable_ = 0, pages_ = 0;
};

// A page of a table's rows: their numbers are above `before`, and at most `last`.
struct Leaf {
  uint32_t page;
  int64_t before, last;
};

// The pages of a table's rows. All lie equally deep, so that only those above them are read for it.
class Leaves {
 public:
  Leaves(const Database& database, uint32_t root) : database_(database) {
    const Leaf whole = {root, INT64_MIN, INT64_MAX};
    for (Leaf leaf = whole; !children(leaf).empty(); leaf = children(leaf).front()) {
      expect(++depth_ < DEEPEST);
    }
    collect(whole, 0);
  }

  const std::vector<Leaf>& found() const {
    return found_;
  }

 private:
  void collect(const Leaf& leaf, int depth) {
    if (depth == depth_) {
      found_.push_back(leaf);
      return;
    }
    expect(++seen_ <= database_.pages()); // pages that lead to each other would take for ever
    for (const Leaf& child : children(leaf)) {
      collect(child, depth + 1);
    }
  }

  // The pages below one; none of a page with rows.
  std::vector<Leaf> children(const Leaf& leaf) const {
    std::vector<uint8_t> copied(database_.page_bytes());
    database_.copy(leaf.page, 1, copied.data());
    const Page page(copied.data(), database_.usable(), leaf.page == 1);
    std::vector<Leaf> below;
    if (page.kind == LEAF) {
      return below;
    }
    int64_t before = leaf.before;
    for (uint32_t i = 0; i < page.cells; ++i) {
      Bytes at = page.cell(i);
      expect(page.end - at > 4);
      const uint32_t number = big_endian(at, 4);
      const auto last = static_cast<int64_t>(varint(at += 4, page.end));
      expect(before < last && last <= leaf.last);
      below.push_back({number, before, last});
      before = last;
    }
    below.push_back({big_endian(page.header + 8, 4), before, leaf.last});
    return below;
  }

  const Database& database_;
  int depth_ = 0;
  size_t seen_ = 0;
  std::vector<Leaf> found_;
};

} // namespace sqlite
