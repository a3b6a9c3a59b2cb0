// How the library's functions are seen from outside, and what they give where they can't do what is asked.
#pragma once

#include <exception>

#define EXPORTED extern "C" __attribute__((visibility("default")))

// What `make` gives; null where it throws: something is unusual, memory runs out, or no thread can be started.
template <typename Make>
auto made(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception&) {
    return nullptr;
  }
}
