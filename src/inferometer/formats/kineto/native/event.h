// One event of the text: its fields, and those of its arguments that its category's table has columns for.
#pragma once

#include "columns.h"
#include "numbers.h"

#include <variant>

namespace kineto {

using Integer = std::optional<int64_t>;
using Text = std::optional<std::string_view>;

// An argument's JSON text as it stands.
struct Raw {
  std::string_view text;
};

// A stream's number; its address (`0x7f…`) is none.
struct StreamHandle {
  Integer number;
};

struct Args {
  Integer external_id, old_external_id, correlation, queued, device, context, stream, registers, shared, graph_id,
      graph_node_id, bytes, size, record_function_id, sequence_number, parent, frame_id;
  std::optional<double> occupancy;
  std::optional<Triple> grid, block;
  Text kernel, kernel_file, kernel_hash, kernel_backend;
  Raw dims, old_dims, dtypes, strides, scalars;
  StreamHandle stream_handle;
};

using Place = std::variant<
    Integer Args::*,
    std::optional<double> Args::*,
    std::optional<Triple> Args::*,
    Text Args::*,
    Raw Args::*,
    StreamHandle Args::*>;

struct Argument {
  std::string_view key;
  Place place;
};

using Arguments = std::vector<Argument>;

// A text with its escapes undone lives here as long as the event is looked at.
class Unescaped {
 public:
  void clear() {
    texts_.clear();
  }

  std::string_view undo(const Quoted& found) {
    if (!found.is_ascii) {
      expect(is_utf8(found.text));
    }
    return found.has_escapes ? undo_escapes(found.text) : found.text;
  }

 private:
  std::string_view undo_escapes(std::string_view text) {
    constexpr std::string_view KINDS = "\"\\/bfnrt", MEANINGS = "\"\\/\b\f\n\r\t";
    auto& plain = *texts_.emplace_back(std::make_unique<std::string>());
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        plain.push_back(text[i]);
        continue;
      }
      const size_t kind = KINDS.find(text[++i]);
      expect(kind != KINDS.npos); // a code point in hexadecimal
      plain.push_back(MEANINGS[kind]);
    }
    return plain;
  }

  static bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const size_t size = utf8_size(text.substr(i));
      if (size == 0) {
        return false;
      }
      i += size;
    }
    return true;
  }

  // Bytes of the character that the text begins with; 0: it is none.
  static size_t utf8_size(std::string_view text) {
    const auto byte = [text](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
    const auto goes_on = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80) {
      return 1;
    }
    if (first >= 0xC2 && first < 0xE0) {
      return goes_on(1) ? 2 : 0;
    }
    if (first >= 0xE0 && first < 0xF0) {
      const bool is_short = first == 0xE0 && byte(1) < 0xA0, is_half = first == 0xED && byte(1) >= 0xA0;
      return goes_on(1) && goes_on(2) && !is_short && !is_half ? 3 : 0;
    }
    if (first >= 0xF0 && first < 0xF5) {
      const bool is_short = first == 0xF0 && byte(1) < 0x90, is_beyond = first == 0xF4 && byte(1) >= 0x90;
      return goes_on(1) && goes_on(2) && goes_on(3) && !is_short && !is_beyond ? 4 : 0;
    }
    return 0;
  }

  std::vector<std::unique_ptr<std::string>> texts_;
};

// Reads arguments into the places of their types. `null` is as if it weren't there.
class ArgumentReader {
 public:
  ArgumentReader(Cursor& cursor, Unescaped& unescaped, Args& args)
      : cursor_(cursor), unescaped_(unescaped), args_(args) {}

  // The object that comes next; arguments that aren't known are passed over.
  void read(const Arguments& known) {
    uint32_t seen = 0;
    size_t next = 0; // they mostly come in the order in which they are known
    cursor_.fields([&](std::string_view key) {
      for (size_t tries = 0; tries < known.size(); ++tries, next = (next + 1) % known.size()) {
        if (known[next].key == key) {
          expect((seen >> next & 1) == 0);
          seen |= uint32_t(1) << next;
          std::visit([this](auto place) { take(args_.*place); }, known[next].place);
          next = (next + 1) % known.size();
          return;
        }
      }
      cursor_.value();
    });
  }

 private:
  void take(Integer& place) {
    const std::string_view text = cursor_.value();
    if (text != "null") {
      const bool is_quoted = text.size() >= 2 && text.front() == '"';
      place = parse_integer(is_quoted ? unquoted_number(text) : text);
    }
  }

  // `"12"` counts as a number; `"012"` and `"-12"` are for Python to judge.
  static std::string_view unquoted_number(std::string_view text) {
    text = text.substr(1, text.size() - 2);
    expect(!text.empty() && text.front() != '-' && (text == "0" || text.front() != '0'));
    return text;
  }

  void take(std::optional<double>& place) {
    const std::string_view text = cursor_.value();
    if (text != "null") {
      place = parse_double(text);
    }
  }

  void take(std::optional<Triple>& place) {
    if (!cursor_.take('[')) {
      expect(cursor_.value() == "null");
      return;
    }
    Triple triple;
    for (int64_t& number : triple) {
      number = parse_integer(cursor_.value());
      cursor_.need(&number == &triple.back() ? ']' : ',');
    }
    place = triple;
  }

  void take(Text& place) {
    cursor_.skip_space();
    if (cursor_.peek() == '"') {
      place = unescaped_.undo(cursor_.quoted());
    } else {
      expect(cursor_.value() == "null");
    }
  }

  void take(Raw& place) {
    place.text = cursor_.value();
  }

  void take(StreamHandle& place) {
    const std::string_view text = cursor_.value();
    if (text.front() != '"') {
      place.number = text == "null" ? Integer() : parse_integer(text);
      return;
    }
    const std::string_view inside = text.substr(1, text.size() - 2);
    expect(inside.substr(0, 2) == "0x" && inside.find_first_not_of("0123456789abcdefABCDEF", 2) == inside.npos);
  }

  Cursor& cursor_;
  Unescaped& unescaped_;
  Args& args_;
};

// An event's own fields, of which each may stand there once.
struct Event {
  enum Field { PHASE, CATEGORY, NAME, PROCESS, THREAD, START, DURATION, ARGS, FIELDS };

  const char* begin = nullptr;
  const char* end = nullptr;
  std::string_view values[FIELDS]; // JSON text; empty where there is none
  Quoted name;

  // The text between the quotes of a field that is plain text.
  std::string_view plain(Field field) const {
    const std::string_view text = values[field];
    expect(text.size() >= 2 && text.front() == '"' && text.find('\\') == text.npos);
    return text.substr(1, text.size() - 2);
  }

  Integer integer(Field field) const {
    return parse_integer(values[field]);
  }
};

inline int field_of(std::string_view key) {
  constexpr std::string_view KEYS[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};
  for (int field = 0; field < Event::FIELDS; ++field) {
    if (KEYS[field] == key) {
      return field;
    }
  }
  return Event::FIELDS;
}

// The event that begins at the cursor. `take_args(event, cursor)` may read its arguments at once, and says whether it did.
template <typename TakeArgs>
Event read_event(Cursor& cursor, TakeArgs take_args) {
  Event event;
  event.begin = cursor.at();
  cursor.fields([&](std::string_view key) {
    const int field = field_of(key);
    if (field == Event::FIELDS) {
      cursor.value();
      return;
    }
    expect(event.values[field].empty());
    cursor.skip_space();
    const char* begin = cursor.at();
    if (field == Event::NAME && cursor.peek() == '"') {
      event.name = cursor.quoted();
    } else if (field != Event::ARGS || !take_args(event, cursor)) {
      cursor.value();
    }
    event.values[field] = std::string_view(begin, static_cast<size_t>(cursor.at() - begin));
  });
  event.end = cursor.at();
  return event;
}

} // namespace kineto
