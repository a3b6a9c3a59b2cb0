// Numbers from their text, exactly. What isn't written plainly is `Unusual`.
#pragma once

#include "json.h"

#include <iterator>

namespace kineto {

constexpr int MOST_DIGITS = 19; // such a number fits 64 bits without a sign
constexpr int64_t LONGEST_NS = int64_t(1) << 53; // as in launch_columns.py
constexpr uint64_t LATEST_NS = uint64_t(1) << 62; // as in decimals.py
constexpr uint64_t ONE = 1;
constexpr uint64_t POWERS[] = {
    ONE,                  ONE * 10,
    ONE * 100,            ONE * 1'000,
    ONE * 10'000,         ONE * 100'000,
    ONE * 1'000'000,      ONE * 10'000'000,
    ONE * 100'000'000,    ONE * 1'000'000'000,
    ONE * 10'000'000'000, ONE * 100'000'000'000,
};
constexpr int MOST_DECIMALS = std::size(POWERS) - 1;

// Digits, perhaps with a point among them: `number` without it, and how many stand behind it.
struct Decimal {
  uint64_t number = 0;
  int decimals = 0;
};

inline Decimal parse_decimal(std::string_view text) {
  Decimal found;
  bool has_point = false;
  for (const char byte : text) {
    if (byte == '.' && !has_point) {
      has_point = true;
      continue;
    }
    expect(byte >= '0' && byte <= '9');
    found.number = 10 * found.number + static_cast<uint64_t>(byte - '0'); // what doesn't fit is refused below
    found.decimals += has_point;
  }
  const size_t digits = text.size() - has_point;
  expect(0 < digits && digits <= MOST_DIGITS && found.decimals <= MOST_DECIMALS);
  return found;
}

inline uint64_t round_half_even(uint64_t number, uint64_t divisor) {
  const uint64_t whole = number / divisor, rest = number % divisor;
  return whole + (2 * rest > divisor || (2 * rest == divisor && whole % 2 == 1));
}

// Nanoseconds of a number of microseconds that isn't negative.
inline int64_t parse_ns(std::string_view text) {
  const Decimal found = parse_decimal(text);
  if (found.decimals > 3) {
    return static_cast<int64_t>(round_half_even(found.number, POWERS[found.decimals - 3]));
  }
  const uint64_t scale = POWERS[3 - found.decimals];
  expect(found.number <= LATEST_NS / scale);
  return static_cast<int64_t>(found.number * scale);
}

inline int64_t parse_integer(std::string_view text) {
  const bool is_negative = !text.empty() && text.front() == '-';
  const Decimal found = parse_decimal(text.substr(is_negative));
  expect(found.decimals == 0 && text.back() != '.' && found.number <= LATEST_NS);
  const auto number = static_cast<int64_t>(found.number);
  return is_negative ? -number : number;
}

// The nearest double: both numbers are exact as doubles, and one division rounds once.
inline double parse_double(std::string_view text) {
  const Decimal found = parse_decimal(text);
  expect(found.number < ONE << 53);
  return static_cast<double>(found.number) / static_cast<double>(POWERS[found.decimals]);
}

} // namespace kineto
