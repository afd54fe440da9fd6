#include "tools/inspect/matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "autograd/error.h"
#include "tools/inspect/npy.h"
#include "train/files.h"

namespace tapehead {

namespace {

struct Tokens {
  std::vector<std::string> rows, columns;
};

std::vector<std::string> list_of(const nlohmann::json& json, const std::string& path) {
  std::vector<std::string> tokens;
  for (const auto& token : json) {
    if (!token.is_string())
      throw FileError(error_line("tokens", path + " holds what is no text", {}, "give a list of strings"));
    tokens.push_back(token.get<std::string>());
  }
  return tokens;
}

Tokens read_tokens(const std::string& path) {
  const std::string text = read_file(path);
  Tokens tokens;
  if (const auto json = nlohmann::json::parse(text, nullptr, false); json.is_array()) {
    tokens.rows = tokens.columns = list_of(json, path);
  } else if (json.is_object() && json.contains("rows") && json.contains("columns")) {
    tokens = {list_of(json["rows"], path), list_of(json["columns"], path)};
  } else {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) tokens.rows.push_back(line);
    tokens.columns = tokens.rows;
  }
  return tokens;
}

std::vector<std::string> names(const std::vector<std::string>& given, std::int64_t count, const char* axis) {
  if (!given.empty() && static_cast<std::int64_t>(given.size()) != count)
    throw ConfigError(
        error_line("tokens", fmt::format("{} tokens were given, the matrix has {} {}", given.size(), count, axis), {},
                   "give one a position; {\"rows\": [...], \"columns\": [...]} when the axes differ"));
  if (!given.empty()) return given;
  std::vector<std::string> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.emplace_back("·");
  return numbers;
}

bool is_causal(const std::vector<float>& weights, std::int64_t T, std::int64_t S) {
  if (T != S || T < 2) return false;
  const auto matrices = static_cast<std::int64_t>(weights.size()) / (T * S);
  for (std::int64_t m = 0; m < matrices; ++m)
    for (std::int64_t i = 0; i < T; ++i)
      for (std::int64_t j = i + 1; j < S; ++j)
        if (weights[static_cast<std::size_t>((m * T + i) * S + j)] != 0) return false;
  return true;
}

// The layer that an array's name speaks of, else `order`.
std::int32_t layer_of(const std::string& name, std::int32_t order) {
  std::smatch found;
  const bool told = std::regex_search(name, found, std::regex("(?:layers?|blocks?|h)[._]?([0-9]{1,4})"));
  return told ? std::stoi(found[1]) : order;
}

void add_maps(const NamedArray& array, std::int32_t order, const Tokens& tokens, const std::string& path,
              std::vector<AttentionMap>& maps) {
  const auto& shape = array.shape;
  const std::string told =
      fmt::format("{} [{}]", array.name.empty() ? "the array" : array.name, fmt::join(shape, ", "));
  if (shape.size() < 2 || std::ranges::find(shape, 0) != shape.end())
    throw FileError(error_line("npz", path + ": " + told + " is no attention", {}, "save weights [..., T, S]"));
  const std::int64_t T = shape[shape.size() - 2], S = shape.back();
  constexpr std::int64_t kMost = 4096;
  if (T > kMost || S > kMost)
    throw FileError(error_line("npz", path + ": " + told + " is larger than " + std::to_string(kMost) + " positions",
                               {}, "save a part of it"));
  const std::int64_t heads = shape.size() > 2 ? shape[shape.size() - 3] : 1;
  std::int64_t layers = 1;
  for (std::size_t axis = 0; axis + 3 < shape.size(); ++axis) layers *= shape[axis];
  const std::vector<float> weights = floats_of(array, path);
  const bool causal = is_causal(weights, T, S);
  AttentionMap map;
  map.kind = causal ? "decoder" : T == S ? "encoder" : "cross";
  map.rows = static_cast<std::int32_t>(T);
  map.columns = static_cast<std::int32_t>(S);
  map.row_tokens = names(tokens.rows, T, "queries");
  map.column_tokens = names(tokens.columns, S, "keys");
  for (std::int64_t i = 0; i < T * S; ++i) map.visible.push_back(!causal || i % S <= i / S);
  for (std::int64_t m = 0; m < layers * heads; ++m) {
    map.layer = layers > 1 ? static_cast<std::int32_t>(m / heads) : layer_of(array.name, order);
    map.head = static_cast<std::int32_t>(m % heads);
    map.weights.assign(weights.begin() + m * T * S, weights.begin() + (m + 1) * T * S);
    maps.push_back(map);
  }
}

}  // namespace

bool names_matrices(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".npz"); }

std::vector<AttentionMap> read_matrices(const std::string& path, const std::string& tokens_path) {
  const Tokens tokens = tokens_path.empty() ? Tokens{} : read_tokens(tokens_path);
  std::vector<AttentionMap> maps;
  std::int32_t order = 0;
  for (const NamedArray& array : read_arrays(path)) {
    if (array.type.find('f') == std::string::npos) continue;  // masks and indices beside the weights
    if (array.name.starts_with("rollout.") || array.name.ends_with("hook_q") || array.name.ends_with("hook_k") ||
        array.name.ends_with("hook_v"))
      continue;
    add_maps(array, order++, tokens, path, maps);
  }
  if (maps.empty())
    throw FileError(error_line("npz", path + " holds no floats", {}, "save weights [..., T, S] as float32"));
  std::ranges::stable_sort(maps, {}, [](const AttentionMap& m) { return std::pair(m.kind, m.layer); });
  return maps;
}

}  // namespace tapehead
