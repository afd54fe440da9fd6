#include "train/safetensors.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "train/files.h"

namespace tapehead {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

void SafetensorsWriter::write(const std::string& path) const {
  nlohmann::ordered_json header;
  for (const auto& [key, text] : notes_) header["__metadata__"][key] = text;
  std::size_t end = 0;
  for (const Entry& entry : entries_) {
    const std::size_t begin = end;
    end += entry.bytes.size();
    header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that numbers lie aligned in a mapped file
  const std::uint64_t size = text.size();

  std::string file;
  file.reserve(sizeof size + text.size() + end);
  file.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  for (const Entry& entry : entries_)
    file.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  write_file_atomically(path, file);
}

}  // namespace tapehead
