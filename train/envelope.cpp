#include "train/envelope.h"

#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "autograd/error.h"
#include "train/files.h"

namespace tapehead {

namespace {

constexpr std::size_t kMagic = 8, kHeader = kMagic + 4 + 8 + 4;  // magic, version, length, CRC-32
constexpr std::uint64_t kLargest = std::uint64_t{1} << 34;       // 16 GiB

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
}

std::uint64_t get(const char* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(at[i])} << 8 * i;
  return value;
}

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

// Only then may it be opened: opening a pipe would wait for ever.
std::uint64_t size_of_regular_file(const std::string& path, const Envelope& envelope) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw FileError(error_line(envelope.kind, "cannot read " + path + ": " + system_message(errno)));
  if (!S_ISREG(status.st_mode)) throw FileError(error_line(envelope.kind, path + " is not a file"));
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

void save_payload(const std::string& path, const Envelope& envelope, std::string_view payload) {
  std::string contents(envelope.magic);
  contents.reserve(kHeader + payload.size());
  put(contents, envelope.version, 4);
  put(contents, payload.size(), 8);
  put(contents, checksum(payload), 4);
  contents += payload;
  write_file_atomically(path, contents);
}

std::string load_payload(const std::string& path, const Envelope& envelope) {
  const auto refuse = [&](const std::string& fact, std::string_view hint = {}) {
    throw FileError(error_line(envelope.kind, path + " " + fact, "", hint));
  };
  const std::uint64_t size = size_of_regular_file(path, envelope);
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot be read: " + system_message(errno));
  std::array<char, kHeader> header{};
  file.read(header.data(), header.size());
  const auto got = static_cast<std::size_t>(file.gcount());
  if (std::string_view(header.data(), kMagic) != envelope.magic)
    refuse("is not a Tapehead " + std::string(envelope.kind) + " file");
  if (got < kHeader) refuse("is truncated: it ends within its header");
  const std::uint64_t version = get(&header[kMagic], 4), length = get(&header[kMagic + 4], 8);
  if (version > envelope.version)
    refuse("has format version " + std::to_string(version) + ", newer than " + std::to_string(envelope.version),
           "use a newer Tapehead");
  if (version < 1) refuse("is damaged: format version 0 was never written");
  const std::uint64_t rest = size - kHeader;
  if (length > rest)
    refuse("is truncated: " + std::to_string(rest) + " bytes of a payload of " + std::to_string(length));
  if (length < rest) refuse("is damaged: " + std::to_string(rest - length) + " bytes follow its end");
  if (length > kLargest) refuse("is too large: " + std::to_string(length) + " bytes");
  std::string payload(length, '\0');
  file.read(payload.data(), static_cast<std::streamsize>(length));
  if (static_cast<std::uint64_t>(file.gcount()) != length) refuse("cannot be read to its end");
  if (get(&header[kMagic + 12], 4) != checksum(payload)) refuse("is damaged: its checksum does not match");
  return payload;
}

}  // namespace tapehead
