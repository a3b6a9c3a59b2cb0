// The events of one section of the array, decoded into rows in the order in which dispatch.py puts them.
#pragma once

#include "tables.h"

#include <algorithm>

namespace kineto {

constexpr int64_t LARGEST_EVENT = 512 << 10; // far below what the reader in Python counts as too large
constexpr int MOST_GUESSES = 64;

// Their numbers are known to Python, too.
enum TableNumber { LAUNCHES, CALLS, OPS, FRAMES, SPANS, TABLES, NO_TABLE = TABLES };

inline TableNumber table_of(Kind kind) {
  switch (kind) {
    case Kind::LAUNCH:
      return LAUNCHES;
    case Kind::CALL:
      return CALLS;
    case Kind::OP:
      return OPS;
    case Kind::FRAME:
      return FRAMES;
    case Kind::SPAN:
    case Kind::DEVICE_SPAN:
      return SPANS;
    case Kind::FLOW:
      break;
  }
  return NO_TABLE;
}

// The events of one category in one batch. `first`: the place in the batch of the first of them.
struct Group {
  int64_t batch, category, first, events;
};

// An event of no known category, which stands at `begin` to `end` in the text.
struct Foreign {
  int64_t batch, place, begin, end;
};

// Rows of the tables wanted. `wanted` has a bit for each table.
class Rows {
 public:
  explicit Rows(uint32_t wanted) : wanted_(wanted) {}

  bool wants(Kind kind) const {
    return wanted_ >> table_of(kind) & 1;
  }

  Table& table(int number) {
    return *tables_[number];
  }

  void add(const Record& record, int category) {
    const TableNumber number = table_of(record.category.kind);
    table(number).add(record);
    order_[number].push_back(static_cast<uint8_t>(category));
  }

  // A batch is over: in each table its rows go by category, in the order in which `groups` names them.
  void sort_batch(const Group* begin, const Group* end) {
    for (int number = 0; number < TABLES; ++number) {
      std::vector<uint8_t>& categories = order_[number];
      if (std::adjacent_find(categories.begin(), categories.end(), std::not_equal_to()) != categories.end()) {
        std::vector<uint32_t> order;
        for (const Group* group = begin; group != end; ++group) {
          for (uint32_t i = 0; i < categories.size(); ++i) {
            if (categories[i] == group->category) {
              order.push_back(i);
            }
          }
        }
        table(number).reorder(table(number).rows() - categories.size(), order);
      }
      categories.clear();
    }
  }

 private:
  uint32_t wanted_;
  std::unique_ptr<Table> tables_[TABLES] = {
      std::make_unique<Launches>(),
      std::make_unique<Calls>(),
      std::make_unique<Ops>(),
      std::make_unique<Frames>(),
      std::make_unique<Spans>(),
  };
  std::vector<uint8_t> order_[TABLES]; // categories of the rows of the batch
};

// Reads events one by one into rows.
class EventDecoder {
 public:
  explicit EventDecoder(Rows& rows) : rows_(rows) {}

  // The event at the cursor becomes a row, if its table is wanted; its category's number, or FOREIGN.
  int read(Cursor& cursor, Event& event) {
    args_ = {};
    unescaped_.clear();
    bool has_args = false;
    event = read_event(cursor, [&](const Event& so_far, Cursor& at_args) {
      const int category = find_category(so_far.values[Event::CATEGORY]);
      has_args = category != FOREIGN && rows_.wants(CATEGORIES[category].kind);
      if (has_args) {
        ArgumentReader(at_args, unescaped_, args_).read(arguments_of(CATEGORIES[category].kind));
      }
      return has_args;
    });
    const int category = find_category(event.values[Event::CATEGORY]);
    if (category == FOREIGN) {
      return FOREIGN;
    }
    if (CATEGORIES[category].kind == Kind::FLOW) {
      check_flow(event);
    } else {
      add(event, category, has_args);
    }
    return category;
  }

 private:
  static void check_flow(const Event& event) {
    const std::string_view phase = event.plain(Event::PHASE);
    expect(phase == "s" || phase == "t" || phase == "f");
    for (const auto field : {Event::PROCESS, Event::THREAD}) {
      if (!event.values[field].empty()) {
        event.integer(field);
      }
    }
    const std::string_view name = event.values[Event::NAME];
    expect(name.empty() || (name.front() == '"' && event.name.is_ascii && !event.name.has_escapes));
  }

  void add(const Event& event, int number, bool has_args) {
    const Category& category = CATEGORIES[number];
    expect(event.plain(Event::PHASE) == "X");
    expect(!event.values[Event::NAME].empty() && event.values[Event::NAME].front() == '"');
    event.integer(Event::PROCESS);
    event.integer(Event::THREAD);
    const std::string_view name = unescaped_.undo(event.name);
    if (!rows_.wants(category.kind)) {
      return;
    }
    const std::string_view args = event.values[Event::ARGS];
    if (!has_args && !args.empty()) { // they came before the category
      Cursor cursor(args.data(), args.data() + args.size());
      ArgumentReader(cursor, unescaped_, args_).read(arguments_of(category.kind));
    }
    rows_.add({category, event, args_, name}, number);
  }

  Rows& rows_;
  Args args_;
  Unescaped unescaped_;
};

// What was decoded of a text. All places are in bytes from the text's begin.
class Section {
 public:
  // `batch_events`: how many events dispatch.py takes together, which decides on the order of rows.
  Section(uint32_t wanted, int64_t batch_events) : rows(wanted), batch_events_(batch_events) {}

  Rows rows;
  std::vector<Group> groups;
  std::vector<Foreign> foreign;
  int64_t start = 0, stop = 0;
  bool is_last = false; // the array ended

  // The events of `text` from `begin` on, which is where one begins, to the last that begins before `limit`.
  void read(std::string_view text, size_t begin, size_t limit) {
    EventDecoder decoder(rows);
    Cursor cursor(text.data() + begin, text.data() + text.size());
    Event event;
    start = static_cast<int64_t>(begin);
    do {
      const int category = decoder.read(cursor, event);
      expect(event.end - event.begin <= LARGEST_EVENT);
      if (category == FOREIGN) {
        foreign.push_back({batch_, place_, event.begin - text.data(), event.end - text.data()});
      } else {
        count(category);
      }
      if (++place_ == batch_events_) {
        end_batch();
      }
      is_last = cursor.take(']');
      if (!is_last) {
        cursor.need(',');
        cursor.skip_space();
      }
      stop = cursor.at() - text.data();
    } while (!is_last && static_cast<size_t>(stop) < limit);
    end_batch();
  }

  void count(int category) {
    for (size_t i = first_group_; i < groups.size(); ++i) {
      if (groups[i].category == category) {
        ++groups[i].events;
        return;
      }
    }
    groups.push_back({batch_, category, place_, 1});
  }

  void end_batch() {
    rows.sort_batch(groups.data() + first_group_, groups.data() + groups.size());
    first_group_ = groups.size();
    place_ = 0;
    ++batch_;
  }

 private:
  int64_t batch_events_, batch_ = 0, place_ = 0;
  size_t first_group_ = 0; // of the batch
};

// Where in `text` the first event seems to begin, from `at_least` on; `npos` where none is near.
inline size_t guess_start(std::string_view text, size_t at_least) {
  size_t at = 0;
  for (int guesses = 0; guesses < MOST_GUESSES; ++guesses) {
    at = text.find('{', std::max(at, at_least));
    if (at == text.npos) {
      break;
    }
    const size_t comma = text.substr(0, at).find_last_not_of(" \t\r\n");
    const size_t brace = comma == text.npos ? comma : text.substr(0, comma).find_last_not_of(" \t\r\n");
    if (brace != text.npos && text[comma] == ',' && text[brace] == '}') {
      try {
        Cursor cursor(text.data() + at, text.data() + text.size());
        if (!read_event(cursor, [](const Event&, Cursor&) { return false; }).values[Event::PHASE].empty()) {
          return at;
        }
      } catch (const Unusual&) {
      }
    }
    ++at;
  }
  return text.npos;
}

} // namespace kineto
