// Takes an enveloped file apart and puts it together with a right length and checksum around any payload: what a
// hostile writer can do, and a flipped bit cannot.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

#include "tests/temporary_folder.h"
#include "train/files.h"

namespace tapehead::test {

constexpr std::size_t kHeaderBytes = 24;

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

inline std::string payload_of(const std::string& path) { return read_file(path).substr(kHeaderBytes); }

inline void write_hostile(const std::string& path, const std::string& magic, const std::string& payload) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(payload.data());
  write_plainly(path, magic + little_endian(1, 4) + little_endian(payload.size(), 8) +
                          little_endian(::crc32_z(0, bytes, payload.size()), 4) + payload);
}

}  // namespace tapehead::test
