// What a call throws, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "autograd/error.h"

namespace tapehead::test {

/// The message of the `Kind` that `call` throws; "" and a failure when it throws none or another.
template <class Kind, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "threw nothing";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
inline std::ptrdiff_t lines_of(const std::string& text) { return 1 + std::count(text.begin(), text.end(), '\n'); }

}  // namespace tapehead::test
