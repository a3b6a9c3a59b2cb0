// Rows of a table as columns of whole numbers.
#pragma once

#include "pages.h"

#include <algorithm>
#include <cstring>

namespace sqlite {

inline int64_t whole_number(Bytes at, uint32_t bytes) {
  uint64_t number = at[0] >= 0x80 ? ~uint64_t(0) : 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    number = number << 8 | at[i];
  }
  return static_cast<int64_t>(number);
}

constexpr uint64_t NULL_VALUE = 0, FLOAT = 7, ZERO = 8, ONE = 9, FIRST_TEXT = 12;
constexpr uint64_t LARGEST = uint64_t(1) << 32; // of a value; SQLite itself allows less
constexpr uint8_t NUMBER_BYTES[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0}; // by serial type

inline uint64_t bytes_of(uint64_t type) {
  expect(type <= ONE || type >= FIRST_TEXT);
  return type <= ONE ? NUMBER_BYTES[type] : (type - FIRST_TEXT) / 2;
}

struct Place {
  uint64_t offset; // behind the record's header
  uint8_t type;
};

// A column that is asked for: which of the record's values it is, and where they go, an item a row. A null that stands
// for the row's number (`is_row_id`: an INTEGER PRIMARY KEY) is that number.
struct Column {
  int32_t number;
  int32_t is_row_id;
  int64_t* values;
  uint8_t* is_null;
  int64_t nulls;
};

// Where the values that are asked for lie in records whose headers are alike.
class Layout {
 public:
  Layout(const Column* columns, size_t count) : places_(count) {
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<size_t>(columns[i].number);
      asked_.resize(std::max(asked_.size(), number + 1), NOT_ASKED);
      expect(asked_[number] == NOT_ASKED);
      asked_[number] = i;
    }
  }

  const std::vector<Place>& places() const {
    return places_;
  }

  // Where a record's values begin. `here` of its `payload` bytes stand at `record`; they hold all that are asked for.
  Bytes values(Bytes record, uint64_t here, uint64_t payload) {
    Bytes at = record;
    const uint64_t header = varint(at, record + here);
    expect(header <= here && header >= static_cast<uint64_t>(at - record));
    if (header != header_.size() || std::memcmp(record, header_.data(), header) != 0) {
      learn(at, record + header);
      header_.assign(record, record + header);
    }
    expect(needed_ <= here - header && all_ == payload - header);
    return record + header;
  }

 private:
  static constexpr size_t NOT_ASKED = SIZE_MAX;

  void learn(Bytes at, Bytes end) {
    all_ = needed_ = 0;
    size_t number = 0;
    for (; at < end; ++number) {
      const uint64_t type = varint(at, end), bytes = bytes_of(type);
      expect(bytes < LARGEST);
      if (number < asked_.size() && asked_[number] != NOT_ASKED) {
        expect(type <= ONE && type != FLOAT);
        places_[asked_[number]] = {all_, static_cast<uint8_t>(type)};
        needed_ = all_ + bytes;
      }
      all_ += bytes;
    }
    expect(number >= asked_.size()); // else a column was added later, and its value is in the schema
  }

  std::vector<size_t> asked_; // by the number of a record's value: which place is its
  std::vector<Place> places_;
  uint64_t all_ = 0, needed_ = 0; // bytes of the values, and of those up to the last that is asked for
  std::vector<uint8_t> header_;
};

// The bytes of a record that stand on its page; the others are elsewhere.
inline uint64_t bytes_on_page(uint64_t payload, size_t usable) {
  const uint64_t most = usable - 35;
  if (payload <= most) {
    return payload;
  }
  const uint64_t least = (usable - 12) * 32 / 255 - 23;
  const uint64_t some = least + (payload - least) % (usable - 4);
  return some <= most ? some : least;
}

// Some of a table's pages, in memory.
class Block {
 public:
  // `count` leaves from number `first` on.
  Block(const Database& database, const Leaves& leaves, size_t first, size_t count)
      : usable_(database.usable()), leaves_(&leaves.found().at(first)), copied_(count * database.page_bytes()) {
    const size_t page_bytes = database.page_bytes();
    for (size_t begin = 0, end; begin < count; begin = end) {
      for (end = begin + 1; end < count && leaves_[end].page == leaves_[end - 1].page + 1; ++end) {
      }
      database.copy(leaves_[begin].page, end - begin, &copied_[begin * page_bytes]);
    }
    for (size_t i = 0; i < count; ++i) {
      pages_.emplace_back(&copied_[i * page_bytes], usable_, leaves_[i].page == 1);
      expect(pages_.back().kind == LEAF);
      rows += pages_.back().cells;
    }
  }

  void read(Column* columns, size_t count) const {
    Layout layout(columns, count);
    size_t row = 0;
    for (size_t number = 0; number < pages_.size(); ++number) {
      const Page& page = pages_[number];
      int64_t before = leaves_[number].before;
      for (uint32_t i = 0; i < page.cells; ++i, ++row) {
        Bytes at = page.cell(i);
        const uint64_t payload = varint(at, page.end);
        const auto row_id = static_cast<int64_t>(varint(at, page.end));
        expect(row_id > before && row_id <= leaves_[number].last);
        before = row_id;
        const uint64_t here = bytes_on_page(payload, usable_);
        expect(here <= static_cast<uint64_t>(page.end - at));
        const Bytes values = layout.values(at, here, payload);
        for (size_t column = 0; column < count; ++column) {
          put(columns[column], row, values, layout.places()[column], row_id);
        }
      }
    }
  }

  size_t rows = 0;

 private:
  static void put(Column& column, size_t row, Bytes values, const Place& place, int64_t row_id) {
    if (place.type == NULL_VALUE) {
      column.values[row] = column.is_row_id ? row_id : 0;
      column.is_null[row] = !column.is_row_id;
      column.nulls += !column.is_row_id;
    } else if (place.type >= ZERO) {
      column.values[row] = place.type - ZERO;
    } else {
      column.values[row] = whole_number(values + place.offset, NUMBER_BYTES[place.type]);
    }
  }

  size_t usable_;
  const Leaf* leaves_;
  std::vector<uint8_t> copied_;
  std::vector<Page> pages_;
};

} // namespace sqlite
