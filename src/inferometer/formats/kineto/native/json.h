// Steps through JSON text, as strictly as the reader in Python at least: what it would refuse is `Unusual` here.
#pragma once

#include <cctype>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string_view>

namespace kineto {

// Something that the reader in Python is left to decide. Nothing that was read counts then.
struct Unusual : std::exception {};

constexpr int DEEPEST = 32; // nesting within an event: Kineto has 4

inline void expect(bool holds) {
  if (!holds) {
    throw Unusual();
  }
}

// A string's text without its quotes. `has_escapes`: it holds a backslash; `is_ascii`: no byte is above 0x7F.
struct Quoted {
  std::string_view text;
  bool has_escapes = false, is_ascii = true;
};

// Stands in a text that ends at `end`. Reading beyond it is `Unusual`: there the event isn't whole.
class Cursor {
 public:
  Cursor(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const {
    return at_;
  }

  // The next byte, which stays; 0 at the end.
  char peek() const {
    return at_ == end_ ? '\0' : *at_;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }

  // Whether `byte` comes next, after white space; it is taken then.
  bool take(char byte) {
    skip_space();
    if (peek() != byte) {
      return false;
    }
    ++at_;
    return true;
  }

  void need(char byte) {
    expect(take(byte));
  }

  Quoted quoted() {
    need('"');
    Quoted found;
    const char* begin = at_;
    while (true) {
      skip_plain();
      const unsigned char byte = peek();
      if (byte == '"') {
        found.text = std::string_view(begin, at_ - begin);
        ++at_;
        return found;
      }
      expect(byte >= 0x20);
      if (byte == '\\') {
        found.has_escapes = true;
        skip_escape();
      } else {
        found.is_ascii = found.is_ascii && byte < 0x80;
        ++at_;
      }
    }
  }

  // A key and its colon. Only plain ASCII is usual.
  std::string_view key() {
    const Quoted found = quoted();
    expect(found.is_ascii && !found.has_escapes);
    need(':');
    return found.text;
  }

  // The text of one value of any type.
  std::string_view value(int depth = 0) {
    skip_space();
    const char* begin = at_;
    switch (peek()) {
      case '"':
        expect(quoted().is_ascii);
        break;
      case '{':
        object(depth);
        break;
      case '[':
        array(depth);
        break;
      case 't':
        word("true");
        break;
      case 'f':
        word("false");
        break;
      case 'n':
        word("null");
        break;
      default:
        number();
    }
    return std::string_view(begin, at_ - begin);
  }

  // Calls `take(key)` for each field of the object that comes next; it must take the value.
  template <typename Take>
  void fields(Take take_field) {
    need('{');
    if (take('}')) {
      return;
    }
    do {
      take_field(key());
    } while (take(','));
    need('}');
  }

 private:
  void object(int depth) {
    expect(depth < DEEPEST);
    fields([&](std::string_view) { value(depth + 1); });
  }

  void array(int depth) {
    expect(depth < DEEPEST);
    ++at_;
    if (take(']')) {
      return;
    }
    do {
      value(depth + 1);
    } while (take(','));
    need(']');
  }

  void word(std::string_view text) {
    expect(static_cast<size_t>(end_ - at_) >= text.size() && std::memcmp(at_, text.data(), text.size()) == 0);
    at_ += text.size();
  }

  void number() {
    at_ += peek() == '-';
    if (peek() == '0') {
      ++at_;
    } else {
      digits();
    }
    if (peek() == '.') {
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      at_ += peek() == '+' || peek() == '-';
      digits();
    }
  }

  void digits() {
    const char* begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      ++at_;
    }
    expect(at_ != begin);
  }

  void skip_escape() {
    ++at_;
    const char kind = peek();
    expect(kind != '\0' && std::strchr("\"\\/bfnrtu", kind) != nullptr);
    ++at_;
    if (kind == 'u') {
      for (int i = 0; i < 4; ++i, ++at_) {
        expect(std::isxdigit(static_cast<unsigned char>(peek())));
      }
    }
  }

  // Move over bytes that mean nothing in a string, eight at a time, to one that may.
  void skip_plain() {
    constexpr uint64_t ONES = 0x0101010101010101, HIGH = 0x8080808080808080;
    const auto has_zero = [](uint64_t word) { return (word - ONES) & ~word & HIGH; };
    while (end_ - at_ >= 8) {
      uint64_t word;
      std::memcpy(&word, at_, 8);
      const uint64_t is_control = (word - ONES * 0x20) & ~word & HIGH;
      if ((word & HIGH) | has_zero(word ^ ONES * '"') | has_zero(word ^ ONES * '\\') | is_control) {
        break;
      }
      at_ += 8;
    }
    while (at_ != end_ && static_cast<unsigned char>(*at_) >= 0x20 && static_cast<unsigned char>(*at_) < 0x80 &&
           *at_ != '"' && *at_ != '\\') {
      ++at_;
    }
  }

  const char* at_;
  const char* end_;
};

} // namespace kineto
