// Every error of the library: one line that names the thing, the values at odds and one action.
//
//   [matmul] inner widths differ: a is [32, 64], b is [128, 64] (in blocks.3.mlp.fc). Hint: ...
//
// A library function throws and never prints or exits; the command turns the kind into an exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tapehead {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Shapes, axes, indices or handles that do not fit together: a mistake in code that uses the library.
struct ShapeError : Error {
  using Error::Error;
};
/// A setting out of range or unknown. The command exits with 2.
struct ConfigError : Error {
  using Error::Error;
};
/// A file that is missing, unreadable, damaged or does not fit. The command exits with 2.
struct FileError : Error {
  using Error::Error;
};

/// "[where] fact (in scope). Hint: hint." Scope and hint are left out when empty.
std::string error_line(std::string_view where, std::string_view fact, std::string_view scope = {},
                       std::string_view hint = {});

/// 'text' for a message: bytes that are not printable ASCII as \xNN, cut after 60 characters, so that a line stays one.
std::string in_quotes(std::string_view text);

/// The candidate closest to `word` by edit distance, or "" when none is close enough to be a slip of the hand.
std::string did_you_mean(std::string_view word, const std::string* begin, const std::string* end);

}  // namespace tapehead
