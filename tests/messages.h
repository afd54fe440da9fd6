// What an expected error says.
#pragma once

#include <string>

namespace tapehead::test {

/// The message of the E that f throws; "" when it throws nothing.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace tapehead::test
