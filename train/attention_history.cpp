#include "train/attention_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "train/archive.h"
#include "train/envelope.h"

namespace tapehead {

namespace {

constexpr Envelope kHistoryFile{"snapshots", "TAPEMAPS", 2};
constexpr std::uint16_t kOne = 65534, kNoWeight = 65535;

std::uint16_t pack(float weight) {
  constexpr float kSlack = 1e-5f;                                      // rounding
  if (!(weight >= -kSlack && weight <= 1 + kSlack)) return kNoWeight;  // NaN too
  return static_cast<std::uint16_t>(std::lround(std::clamp(weight, 0.0f, 1.0f) * float{kOne}));
}

float unpack(std::uint16_t packed) {
  return packed == kNoWeight ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(packed) / float{kOne};
}

std::size_t visible_cells(const AttentionMap& head) {
  return static_cast<std::size_t>(std::ranges::count_if(head.visible, [](std::uint8_t flag) { return flag != 0; }));
}

bool same_head(const AttentionMap& a, const AttentionMap& b) {
  return a.kind == b.kind && a.layer == b.layer && a.head == b.head && a.rows == b.rows && a.columns == b.columns &&
         a.visible == b.visible && a.row_tokens == b.row_tokens && a.column_tokens == b.column_tokens &&
         a.ideal == b.ideal;
}

// --- fields, for both ways

template <class Archive>
void transfer_tokens(Archive& a, const char* field, typename Archive::template Ref<std::vector<std::string>> tokens) {
  a.list(field, tokens, [](Archive& each, auto& token) { each.text("token", token); });
}

template <class Archive>
void transfer_head(Archive& a, typename Archive::template Ref<AttentionMap> head) {
  a.text("kind", head.kind);
  a.number("layer", head.layer);
  a.number("head", head.head);
  a.number("rows", head.rows);
  a.number("columns", head.columns);
  a.numbers("visible", head.visible);
  transfer_tokens(a, "row_tokens", head.row_tokens);
  transfer_tokens(a, "column_tokens", head.column_tokens);
  a.numbers("ideal", head.ideal);
}

void transfer_reason(FieldWriter& a, const SnapshotReason& reason) {
  a.number("reason", static_cast<std::uint8_t>(reason));
}
void transfer_reason(FieldReader& a, SnapshotReason& reason) {
  std::uint8_t number = 0;
  a.number("reason", number);
  if (number > static_cast<std::uint8_t>(SnapshotReason::end)) a.fail("reason", "is " + std::to_string(number));
  reason = static_cast<SnapshotReason>(number);
}

template <class Archive>
void transfer_snapshot(Archive& a, typename Archive::template Ref<PackedSnapshot> snapshot) {
  a.number("step", snapshot.step);
  a.number("loss", snapshot.loss);
  a.number("exact_match", snapshot.exact_match);
  transfer_reason(a, snapshot.reason);
  a.numbers("weights", snapshot.weights);
  a.numbers("parameters", snapshot.parameters);
}

template <class Archive>
void transfer(Archive& a, typename Archive::template Ref<AttentionHistory> history) {
  a.list("heads", history.heads, [](Archive& each, auto& head) { transfer_head(each, head); });
  a.number("width", history.width);
  a.list("tensors", history.tensors, [](Archive& each, auto& tensor) {
    each.text("name", tensor.name);
    each.numbers("shape", tensor.shape);
  });
  a.list("snapshots", history.snapshots, [](Archive& each, auto& snapshot) { transfer_snapshot(each, snapshot); });
}

// --- what must hold together

// Bytes of all tensors; none when a size is not above 0 or the product overflows.
std::optional<std::size_t> bytes_of(const std::vector<NamedShape>& tensors, std::uint8_t width) {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  std::size_t all = 0;
  for (const NamedShape& tensor : tensors) {
    std::size_t numbers = 1;
    for (const std::int64_t size : tensor.shape) {
      if (size < 1 || static_cast<std::size_t>(size) > kMost / numbers) return std::nullopt;
      numbers *= static_cast<std::size_t>(size);
    }
    all += numbers * width;
    if (all > kMost) return std::nullopt;
  }
  return all;
}

std::string fault(const AttentionHistory& history) {
  std::size_t cells = 0;
  for (AttentionMap head : history.heads) {
    head.weights.resize(head.visible.size());  // kept elsewhere
    if (std::string wrong = fault(head); !wrong.empty()) return "a map whose " + wrong;
    cells += visible_cells(head);
  }
  if (history.width != 4 && history.width != 8) return "numbers whose width is neither 4 nor 8 bytes";
  const std::optional<std::size_t> bytes = bytes_of(history.tensors, history.width);
  if (!bytes) return "a tensor of an impossible shape";
  for (std::size_t i = 0; i < history.size(); ++i) {
    const PackedSnapshot& s = history.snapshots[i];
    if (s.weights.size() != cells) return "a snapshot whose weights are not those of the visible cells";
    if (!s.parameters.empty() && s.parameters.size() != *bytes) return "parameters that are not those of its tensors";
    if (i > 0 && s.step <= history.snapshots[i - 1].step) return "snapshots that are not in order";
  }
  return "";
}

void require_sound(const std::string& path, const AttentionHistory& history) {
  if (const std::string wrong = fault(history); !wrong.empty())
    throw FileError(error_line("snapshots", path + " holds " + wrong));
}

}  // namespace

void AttentionHistory::add(const Snapshot& snapshot, SnapshotReason reason) {
  if (heads.empty() && snapshots.empty()) {
    heads = snapshot.maps;
    for (AttentionMap& head : heads) head.weights = {};
  }
  if (!std::ranges::equal(heads, snapshot.maps, same_head))
    throw Error(error_line(
        "snapshots", "the heads of step " + std::to_string(snapshot.step) + " are not those of the snapshots before"));
  PackedSnapshot packed{snapshot.step, snapshot.loss, snapshot.exact_match, reason, {}, {}};
  packed.weights.reserve(packed_bytes(heads) / 2);
  for (const AttentionMap& map : snapshot.maps)
    for (std::size_t cell = 0; cell < map.weights.size(); ++cell)
      if (map.visible[cell]) packed.weights.push_back(pack(map.weights[cell]));
  snapshots.push_back(std::move(packed));
}

Snapshot AttentionHistory::at(std::size_t index) const {
  const PackedSnapshot& packed = snapshots.at(index);
  Snapshot snapshot{packed.step, packed.loss, packed.exact_match, heads};
  auto next = packed.weights.begin();
  for (AttentionMap& map : snapshot.maps) {
    map.weights.resize(map.visible.size());
    for (std::size_t cell = 0; cell < map.weights.size(); ++cell)
      if (map.visible[cell]) map.weights[cell] = unpack(*next++);
  }
  return snapshot;
}

std::vector<Snapshot> AttentionHistory::all() const {
  std::vector<Snapshot> list;
  for (std::size_t i = 0; i < size(); ++i) list.push_back(at(i));
  return list;
}

std::size_t AttentionHistory::packed_bytes(const std::vector<AttentionMap>& heads) {
  std::size_t cells = 0;
  for (const AttentionMap& head : heads) cells += visible_cells(head);
  return cells * sizeof(std::uint16_t);
}

std::vector<StoredTensor> AttentionHistory::parameters_of(const PackedSnapshot& snapshot) const {
  std::vector<StoredTensor> stored;
  if (snapshot.parameters.empty()) return stored;
  auto next = snapshot.parameters.begin();
  for (const NamedShape& tensor : tensors) {
    const auto bytes = static_cast<std::ptrdiff_t>(bytes_of({tensor}, width).value_or(0));
    stored.push_back({tensor.name, tensor.shape, {next, next + bytes}});
    next += bytes;
  }
  return stored;
}

void AttentionHistory::save(const std::string& path) const {
  require_sound(path, *this);
  FieldWriter writer;
  transfer(writer, *this);
  save_payload(path, kHistoryFile, std::move(writer).take());
}

AttentionHistory AttentionHistory::load(const std::string& path) {
  const std::string payload = load_payload(path, kHistoryFile);
  FieldReader reader(payload, "snapshots", path);
  AttentionHistory history;
  transfer(reader, history);
  reader.require_end();
  require_sound(path, history);
  return history;
}

}  // namespace tapehead
