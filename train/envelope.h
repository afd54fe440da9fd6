// The frame around every binary file: magic, version, length and CRC-32 of the payload. What comes out of it is what
// was once put in; what it means is still to be checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapehead {

struct Envelope {
  std::string_view kind;   // "checkpoint", for messages
  std::string_view magic;  // 8 bytes
  std::uint32_t version;
};

/// Throws FileError when the file cannot be written.
void save_payload(const std::string& path, const Envelope& envelope, std::string_view payload);
/// Throws FileError naming the file: missing, foreign, from a newer program, truncated, too long or damaged. Allocates
/// no more than the file's own size.
std::string load_payload(const std::string& path, const Envelope& envelope);

}  // namespace tapehead
