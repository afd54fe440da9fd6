#include "train/attention_map.h"

#include <algorithm>
#include <limits>

#include "train/archive.h"
#include "train/envelope.h"

namespace tapehead {

namespace {

constexpr Envelope kEnvelope{"snapshots", "TAPEMAPS", 1};

template <class Archive>
void transfer_tokens(Archive& a, const char* field, typename Archive::template Ref<std::vector<std::string>> tokens) {
  a.list(field, tokens, [](Archive& each, auto& token) { each.text("token", token); });
}

template <class Archive>
void transfer_map(Archive& a, typename Archive::template Ref<AttentionMap> map) {
  a.text("kind", map.kind);
  a.number("layer", map.layer);
  a.number("head", map.head);
  a.number("rows", map.rows);
  a.number("columns", map.columns);
  a.numbers("weights", map.weights);
  a.numbers("visible", map.visible);
  transfer_tokens(a, "row_tokens", map.row_tokens);
  transfer_tokens(a, "column_tokens", map.column_tokens);
  a.numbers("ideal", map.ideal);
}

template <class Archive>
void transfer_snapshot(Archive& a, typename Archive::template Ref<Snapshot> snapshot) {
  a.number("step", snapshot.step);
  a.number("loss", snapshot.loss);
  a.number("exact_match", snapshot.exact_match);
  a.list("maps", snapshot.maps, [](Archive& each, auto& map) { transfer_map(each, map); });
}

template <class Archive>
void transfer_snapshots(Archive& a, typename Archive::template Ref<std::vector<Snapshot>> snapshots) {
  a.list("snapshots", snapshots, [](Archive& each, auto& snapshot) { transfer_snapshot(each, snapshot); });
}

// What does not fit together in a map, or "".
std::string fault(const AttentionMap& map) {
  if (map.kind != "decoder" && map.kind != "encoder" && map.kind != "cross") return "kind is unknown";
  if (map.layer < 0 || map.head < 0) return "layer or head is negative";
  if (map.rows < 1 || map.columns < 1) return "rows or columns are none";
  const auto rows = static_cast<std::size_t>(map.rows), columns = static_cast<std::size_t>(map.columns);
  if (map.weights.size() != rows * columns) return "weights are not rows x columns";  // below 2^62: no overflow
  if (map.visible.size() != rows * columns) return "visible is not rows x columns";
  if (map.row_tokens.size() != rows || map.column_tokens.size() != columns)
    return "tokens do not name rows and columns";
  if (!map.ideal.empty() && map.ideal.size() != rows) return "ideal is not one column a row";
  for (const std::int32_t column : map.ideal)
    if (column < -1 || column >= map.columns) return "ideal is outside the columns";
  return "";
}

std::string first_fault(const std::vector<Snapshot>& snapshots) {
  for (const Snapshot& snapshot : snapshots)
    for (const AttentionMap& map : snapshot.maps)
      if (std::string wrong = fault(map); !wrong.empty()) return wrong;
  return "";
}

void require_sound(const std::string& path, const std::vector<Snapshot>& snapshots) {
  if (const std::string wrong = first_fault(snapshots); !wrong.empty())
    throw FileError(error_line("snapshots", path + " holds a map whose " + wrong));
}

}  // namespace

void save_snapshots(const std::string& path, const std::vector<Snapshot>& snapshots) {
  require_sound(path, snapshots);
  FieldWriter writer;
  transfer_snapshots(writer, snapshots);
  save_payload(path, kEnvelope, std::move(writer).take());
}

std::vector<Snapshot> load_snapshots(const std::string& path) {
  const std::string payload = load_payload(path, kEnvelope);
  FieldReader reader(payload, "snapshots", path);
  std::vector<Snapshot> snapshots;
  transfer_snapshots(reader, snapshots);
  reader.require_end();
  require_sound(path, snapshots);
  return snapshots;
}

double pattern_match(const AttentionMap& map) {
  double sum = 0;
  std::int64_t counted = 0;
  for (std::size_t row = 0; row < map.ideal.size(); ++row) {
    if (map.ideal[row] < 0) continue;
    sum += static_cast<double>(
        map.weights[row * static_cast<std::size_t>(map.columns) + static_cast<std::size_t>(map.ideal[row])]);
    ++counted;
  }
  return counted ? sum / static_cast<double>(counted) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tapehead
