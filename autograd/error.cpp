#include "autograd/error.h"

#include <algorithm>
#include <vector>

namespace tapehead {

std::string error_line(std::string_view where, std::string_view fact, std::string_view scope, std::string_view hint) {
  std::string line = "[" + std::string(where) + "] " + std::string(fact);
  if (!scope.empty()) line += " (in " + std::string(scope) + ")";
  if (line.back() != '.' && line.back() != '?') line += '.';
  if (!hint.empty()) line += " Hint: " + std::string(hint);
  if (line.back() != '.' && line.back() != '?') line += '.';
  return line;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  constexpr const char* kHex = "0123456789abcdef";
  std::string out = "'";
  // Bytes beyond ASCII stay; where a line is printed what its terminal cannot show is spelled out.
  std::size_t length = std::min(text.size(), kLongest);
  while (length < text.size() && length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  for (const char character : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte != 0x7f)
      out += character;
    else
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out + (text.size() > length ? "...'" : "'");
}

namespace {

// Optimal string alignment distance: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::string* begin, const std::string* end) {
  if (word.size() > 64) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string* candidate = begin; candidate != end; ++candidate) {
    const std::size_t distance = edit_distance(word, *candidate);
    if (distance < best_distance) {
      best = *candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace tapehead
