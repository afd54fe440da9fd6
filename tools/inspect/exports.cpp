#include "tools/inspect/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/files.h"
#include "train/map_measures.h"

namespace tapehead {

std::string tap_scope(const std::string& kind, std::int32_t layer, bool has_encoder) {
  const char* stack = kind == "encoder" && has_encoder ? "encoder." : "";
  return fmt::format("{}blocks.{}.{}.", stack, layer, kind == "cross" ? "cross" : "attn");
}

std::vector<NamedArray> pattern_arrays(const std::vector<AttentionMap>& maps) {
  std::vector<NamedArray> arrays;
  const bool has_encoder = std::ranges::any_of(maps, [](const AttentionMap& m) { return m.kind != "encoder"; });
  for (auto first = maps.begin(); first != maps.end();) {
    const auto next = std::find_if(first, maps.end(), [&](const AttentionMap& m) {
      return m.kind != first->kind || m.layer != first->layer || m.rows != first->rows || m.columns != first->columns;
    });
    std::vector<float> weights;
    for (auto map = first; map != next; ++map) weights.insert(weights.end(), map->weights.begin(), map->weights.end());
    const std::string scope = tap_scope(first->kind, first->layer, has_encoder);
    arrays.push_back(array_of(scope + "hook_pattern", {next - first, first->rows, first->columns}, weights));
    arrays.push_back(array_of(scope + "visible", {first->rows, first->columns}, first->visible));
    first = next;
  }
  for (const char* kind : {"decoder", "encoder"})
    if (const std::vector<float> rolled = rollout(maps, kind); !rolled.empty()) {
      const auto length = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(rolled.size()))));
      arrays.push_back(array_of(std::string("rollout.") + kind, {length, length}, rolled));
    }
  return arrays;
}

std::string write_exports(const ExportFiles& files, const std::vector<AttentionMap>& maps, const AttentionMap& large,
                          const Caption& caption, const std::vector<NamedArray>& more_arrays) {
  std::string told;
  const auto tell = [&](const std::string& path, const std::string& what) { told += path + ": " + what + "\n"; };
  const std::string head = fmt::format("L{}H{}", large.layer, large.head);
  if (!files.csv.empty()) {
    write_file_atomically(files.csv, to_csv(maps));
    tell(files.csv, fmt::format("every weight of {} heads, a line a cell", maps.size()));
  }
  if (!files.npz.empty()) {
    std::vector<NamedArray> arrays = pattern_arrays(maps);
    arrays.insert(arrays.end(), more_arrays.begin(), more_arrays.end());
    write_npz(files.npz, arrays);
    tell(files.npz, fmt::format("{} arrays; numpy.load reads them", arrays.size()));
  }
  if (!files.svg.empty()) {
    write_file_atomically(files.svg, to_svg(large, caption));
    tell(files.svg, head + " as a drawing");
  }
  if (!files.png.empty()) {
    write_file_atomically(files.png, to_png(large, caption));
    tell(files.png, head + " as a picture");
  }
  return told;
}

}  // namespace tapehead
