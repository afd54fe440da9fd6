#include "tools/inspect/npy.h"

#include <fmt/format.h>
#include <zip.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <regex>

#include "autograd/error.h"
#include "train/files.h"

namespace tapehead {

namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;
constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

[[noreturn]] void refuse(const std::string& path, const std::string& fact, const std::string& hint = {}) {
  throw FileError(error_line("npz", path + " " + fact, {}, hint));
}

template <class T>
NamedArray make(const std::string& name, const char* type, std::vector<std::int64_t> shape,
                const std::vector<T>& numbers) {
  return {name, type, std::move(shape), {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)}};
}

std::size_t width_of(const std::string& type) { return static_cast<std::size_t>(type.back() - '0'); }

}  // namespace

NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& numbers) {
  return make(name, "<f4", std::move(shape), numbers);
}
NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape,
                    const std::vector<std::uint8_t>& numbers) {
  return make(name, "|u1", std::move(shape), numbers);
}
NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape,
                    const std::vector<std::int32_t>& numbers) {
  return make(name, "<i4", std::move(shape), numbers);
}

// --- writing

std::string npy(const NamedArray& array) {
  std::string shape;
  for (const std::int64_t size : array.shape) shape += fmt::format("{}, ", size);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();  // "(3,)"
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.type, shape);
  constexpr std::size_t kBefore = kMagic.size() + 2, kAlignment = 64;
  header.append(kAlignment - (kBefore + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + array.bytes;
}

void write_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> kept(target, zip_source_free);
  zip_t* zip = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  if (!zip) refuse(path, std::string("cannot be made: ") + zip_error_strerror(&error));
  std::vector<std::string> contents;  // must live until the zip is closed
  contents.reserve(arrays.size());
  for (const NamedArray& array : arrays) contents.push_back(npy(array));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    zip_source_t* source = zip_source_buffer(zip, contents[i].data(), contents[i].size(), 0);
    const zip_int64_t at = zip_file_add(zip, (arrays[i].name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    constexpr zip_uint16_t kMidnight = 0, kFirstDay = 1 << 5 | 1;  // 1980-01-01, the least that a zip can say
    if (at < 0 || zip_set_file_compression(zip, static_cast<zip_uint64_t>(at), ZIP_CM_STORE, 0) < 0 ||
        zip_file_set_dostime(zip, static_cast<zip_uint64_t>(at), kMidnight, kFirstDay, 0) < 0) {
      const std::string why = zip_strerror(zip);
      zip_discard(zip);
      refuse(path, "cannot be made: " + why);
    }
  }
  if (zip_close(zip) < 0) {
    const std::string why = zip_strerror(zip);
    zip_discard(zip);
    refuse(path, "cannot be made: " + why);
  }
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_source_stat(target, &stat) < 0 || zip_source_open(target) < 0) refuse(path, "cannot be made");
  std::string bytes(stat.size, '\0');
  zip_source_read(target, bytes.data(), bytes.size());
  zip_source_close(target);
  write_file_atomically(path, bytes);
}

// --- reading

namespace {

NamedArray parse_npy(const std::string& bytes, const std::string& name, const std::string& path) {
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() < 12 || bytes.compare(0, 6, kMagic, 0, 6) != 0) refuse(path, "holds no NumPy array");
  const bool wide = byte(6) >= 2;  // version 2 and 3: a longer header
  const std::size_t start = wide ? 12 : 10;
  const std::size_t length = byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > bytes.size() - start) refuse(path, "is truncated: it ends within an array's header");
  const std::string header = bytes.substr(start, length);
  std::smatch type, shape;
  if (!std::regex_search(header, type, std::regex("'descr': *'([<>|=]?[a-zA-Z][0-9]+)'")) ||
      !std::regex_search(header, shape, std::regex("'shape': *\\(([0-9, ]*)\\)")))
    refuse(path, "holds an array of structures or a header that cannot be read",
           "save plain numbers: numpy.save(file, weights.astype('float32'))");
  if (header.find("'fortran_order': False") == std::string::npos)
    refuse(path, "holds an array in Fortran's order", "save numpy.ascontiguousarray(weights)");
  NamedArray array{name, type[1], {}, {}};
  std::size_t count = 1;
  const std::string sizes = shape[1];
  const std::regex number("[0-9]+");
  for (auto it = std::sregex_iterator(sizes.begin(), sizes.end(), number); it != std::sregex_iterator(); ++it) {
    const std::string digits = it->str();
    const std::size_t size = digits.size() > 10 ? kLargest + 1 : std::stoull(digits);
    if (size > kLargest || (size > 0 && count > kLargest / size)) refuse(path, "holds an array of more than 1 GB");
    count *= size;
    array.shape.push_back(static_cast<std::int64_t>(size));
  }
  array.bytes = bytes.substr(start + length);
  if (array.type.size() == 3 && array.bytes.size() != count * width_of(array.type))
    refuse(path, fmt::format("is damaged: {} bytes of numbers, {} expected", array.bytes.size(),
                             count * width_of(array.type)));
  return array;
}

std::vector<NamedArray> read_npz(const std::string& path) {
  int error = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> zip(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error),
                                                     [](zip_t* z) { z ? zip_discard(z) : void(); });
  if (!zip) refuse(path, "is damaged, or no zip");
  std::vector<NamedArray> arrays;
  std::size_t total = 0;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip.get(), 0); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &stat) < 0) refuse(path, "is damaged");
    std::string name = stat.name;
    if (!name.ends_with(".npy")) continue;
    total += stat.size;
    if (stat.size > kLargest || total > kLargest) refuse(path, "holds more than 1 GB");
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(
        zip_fopen_index(zip.get(), static_cast<zip_uint64_t>(i), 0),
        [](zip_file_t* f) { return f ? zip_fclose(f) : 0; });
    std::string bytes(stat.size, '\0');
    if (!file || zip_fread(file.get(), bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size()))
      refuse(path, "is damaged: " + name + " cannot be read");
    arrays.push_back(parse_npy(bytes, name.substr(0, name.size() - 4), path));
  }
  return arrays;
}

// IEEE 754 half precision.
float half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                          : std::ldexp(static_cast<float>(fraction), -24));
}

template <class T>
std::vector<T> numbers_of(const NamedArray& array) {
  std::vector<T> numbers(array.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), array.bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

}  // namespace

std::vector<NamedArray> read_arrays(const std::string& path) {
  const std::string bytes = read_file(path, kLargest);
  if (bytes.starts_with("PK")) return read_npz(path);
  if (!bytes.starts_with(kMagic.substr(0, 6))) refuse(path, "is neither .npy nor .npz");
  return {parse_npy(bytes, "", path)};
}

std::vector<float> floats_of(const NamedArray& array, const std::string& path) {
  if (array.type == "<f4") return numbers_of<float>(array);
  std::vector<float> floats;
  if (array.type == "<f8") {
    for (const double x : numbers_of<double>(array)) floats.push_back(static_cast<float>(x));
  } else if (array.type == "<f2") {
    for (const std::uint16_t x : numbers_of<std::uint16_t>(array)) floats.push_back(half(x));
  } else {
    refuse(path, "holds " + array.type + ", not floats of 16, 32 or 64 bits", "save weights.astype('float32')");
  }
  return floats;
}

}  // namespace tapehead
