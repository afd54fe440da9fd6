// Fields to and from a cereal portable binary archive, little-endian. One function describes a type for both ways:
//
//   template <class Archive> void transfer(Archive& a, typename Archive::template Ref<Point> p) { a.number("x", p.x); }
//
// A reader trusts nothing: every count is compared with the bytes that are left before memory is asked for, and what
// does not fit throws FileError with the field's name. Private to train/: needs cereal.
#pragma once

#include <cereal/archives/portable_binary.hpp>
#include <cstdint>
#include <sstream>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "autograd/error.h"

namespace tapehead {

// The width of a field must not depend on the platform; bool and char are left out for that reason.
template <class T>
inline constexpr bool kFixedWidth =
    std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

class FieldWriter {
 public:
  template <class T>
  using Ref = const T&;

  FieldWriter() : archive_(stream_, cereal::PortableBinaryOutputArchive::Options::LittleEndian()) {}

  template <class T>
  void number(const char*, const T& value) {
    static_assert(kFixedWidth<T>);
    archive_(value);
  }
  template <class T>
  void numbers(const char* field, const std::vector<T>& values) {
    static_assert(kFixedWidth<T>);
    count(field, values.size());
    archive_(cereal::binary_data(values.data(), values.size() * sizeof(T)));
  }
  void text(const char* field, const std::string& value) {
    count(field, value.size());
    archive_(cereal::binary_data(value.data(), value.size()));
  }
  template <class T, class Each>
  void list(const char* field, const std::vector<T>& items, Each each) {
    count(field, items.size());
    for (const T& item : items) each(*this, item);
  }
  std::string take() && { return std::move(stream_).str(); }

 private:
  void count(const char* field, std::size_t n) { number(field, static_cast<std::uint64_t>(n)); }

  std::ostringstream stream_;
  cereal::PortableBinaryOutputArchive archive_;
};

class FieldReader {
 public:
  template <class T>
  using Ref = T&;

  /// `payload` must outlive the reader; `kind` and `path` stand in messages.
  FieldReader(std::string_view payload, std::string kind, std::string path)
      : kind_(std::move(kind)), path_(std::move(path)), view_(payload), stream_(&view_), archive_(ready_stream()) {}

  template <class T>
  void number(const char* field, T& value) {
    static_assert(kFixedWidth<T>);
    if (view_.left() < sizeof(T)) fail(field, "is cut off");
    archive_(value);
  }
  template <class T>
  void numbers(const char* field, std::vector<T>& values) {
    static_assert(kFixedWidth<T>);
    values.resize(count(field, sizeof(T)));
    archive_(cereal::binary_data(values.data(), values.size() * sizeof(T)));
  }
  void text(const char* field, std::string& value) {
    value.resize(count(field, 1));
    archive_(cereal::binary_data(value.data(), value.size()));
  }
  template <class T, class Each>
  void list(const char* field, std::vector<T>& items, Each each) {
    const std::size_t n = count(field, 1);
    const std::string outer = scope_;
    items.clear();  // and grown item by item: a count alone reserves nothing
    for (std::size_t i = 0; i < n; ++i) {
      scope_ = outer + field + "[" + std::to_string(i) + "].";
      each(*this, items.emplace_back());
    }
    scope_ = outer;
  }
  void require_end() {
    if (view_.left() > 0) fail("its end", "is followed by " + std::to_string(view_.left()) + " bytes");
  }
  [[noreturn]] void fail(const std::string& field, const std::string& fact) const {
    throw FileError(error_line(kind_, path_ + " is damaged: " + scope_ + field + " " + fact));
  }

 private:
  struct View : std::streambuf {
    explicit View(std::string_view bytes) {
      char* begin = const_cast<char*>(bytes.data());  // never written: there is no put area
      setg(begin, begin, begin + bytes.size());
    }
    std::size_t left() const { return static_cast<std::size_t>(egptr() - gptr()); }
    bool little_endian() const { return left() > 0 && *gptr() == 1; }
  };

  // cereal's first byte says which order follows and would have it swapped; ours is fixed.
  std::istream& ready_stream() {
    if (!view_.little_endian()) fail("byte order", "is not little-endian");
    return stream_;
  }

  std::size_t count(const char* field, std::size_t bytes_each) {
    std::uint64_t n = 0;
    number(field, n);
    if (n > view_.left() / bytes_each) fail(field, "has " + std::to_string(n) + " items, more than the file holds");
    return static_cast<std::size_t>(n);
  }

  std::string kind_, path_, scope_;
  View view_;
  std::istream stream_;
  cereal::PortableBinaryInputArchive archive_;
};

}  // namespace tapehead
