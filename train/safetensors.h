// Writes safetensors files: 8 bytes of header size, a JSON header (dtype, shape and data_offsets by name), the numbers.
// The format: https://huggingface.co/docs/safetensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapehead {

class SafetensorsWriter {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const float> numbers) {
    add(name, "F32", shape, std::as_bytes(numbers));
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const double> numbers) {
    add(name, "F64", shape, std::as_bytes(numbers));
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const std::int32_t> numbers) {
    add(name, "I32", shape, std::as_bytes(numbers));
  }
  /// Of another type of the format: "U8".
  void add(const std::string& name, const char* dtype, const std::vector<std::int64_t>& shape,
           std::span<const std::byte> bytes) {
    entries_.push_back({name, dtype, shape, bytes});
  }
  /// An entry of the file's "__metadata__": both are text.
  void note(const std::string& key, const std::string& text) { notes_.emplace_back(key, text); }
  /// Writes what was added, in that order; numbers must still be where they were. Throws FileError, with the file as it
  /// was, when that fails.
  void write(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    const char* dtype;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;
  };
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> notes_;
};

}  // namespace tapehead
