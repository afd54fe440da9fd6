#include "tools/inspect/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/files.h"
#include "train/map_measures.h"
#include "train/safetensors.h"

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

void ExportFiles::require_writable() const {
  for (const std::string& path : {html, csv, npz, safetensors, svg, png})
    if (!path.empty()) tapehead::require_writable(path);
}

namespace {

void write_safetensors(const std::string& path, const std::vector<NamedArray>& arrays, const Caption& caption) {
  SafetensorsWriter file;
  file.note("title", caption.title);
  file.note("command", caption.command);
  for (const NamedArray& a : arrays)
    file.add(a.name, a.type == "|u1" ? "U8" : "F32", a.shape, std::as_bytes(std::span(a.bytes)));
  file.write(path);
}

}  // namespace

std::string write_exports(const ExportFiles& files, const std::vector<AttentionMap>& maps, const AttentionMap& large,
                          const Caption& caption, const std::vector<NamedArray>& more_arrays) {
  std::string told;
  const auto tell = [&](const std::string& path, const std::string& what) { told += path + ": " + what + "\n"; };
  const std::string head = fmt::format("L{}H{}", large.layer, large.head);
  const auto made_by = [&](const char* option) {
    return Caption{caption.title, fmt::format("{} {} FILE", caption.command, option)};
  };
  if (!files.csv.empty()) {
    write_file_atomically(files.csv, to_csv(maps));
    tell(files.csv, fmt::format("every weight of {} heads, a line a cell", maps.size()));
  }
  std::vector<NamedArray> arrays = files.arrays() ? pattern_arrays(maps) : std::vector<NamedArray>{};
  if (files.arrays()) arrays.insert(arrays.end(), more_arrays.begin(), more_arrays.end());
  if (!files.npz.empty()) {
    write_npz(files.npz, arrays);
    tell(files.npz, fmt::format("{} arrays; numpy.load reads them", arrays.size()));
  }
  if (!files.safetensors.empty()) {
    write_safetensors(files.safetensors, arrays, made_by("--safetensors"));
    tell(files.safetensors, fmt::format("{} arrays; safetensors.safe_open reads them", arrays.size()));
  }
  if (!files.svg.empty()) {
    write_file_atomically(files.svg, to_svg(large, made_by("--svg")));
    tell(files.svg, head + " as a drawing");
  }
  if (!files.png.empty()) {
    write_file_atomically(files.png, to_png(large, made_by("--png")));
    tell(files.png, head + " as a picture");
  }
  return told;
}

}  // namespace tapehead
