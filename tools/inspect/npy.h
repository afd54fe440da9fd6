// Arrays in NumPy's formats: .npy (NEP 1, version 1.0) and .npz, a zip of those. Zip is libzip's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapehead {

struct NamedArray {
  std::string name;                 // within an .npz; "" in an .npy
  std::string type;                 // "<f4", "<f8", "|u1", "<i4": little-endian
  std::vector<std::int64_t> shape;  // row-major
  std::string bytes;
};

NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& numbers);
NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& numbers);
NamedArray array_of(const std::string& name, std::vector<std::int64_t> shape, const std::vector<std::int32_t>& numbers);

/// The bytes of an .npy file.
std::string npy(const NamedArray& array);
/// The same arrays give the same bytes: stored without compression, dated 1980-01-01. Throws FileError.
void write_npz(const std::string& path, const std::vector<NamedArray>& arrays);

/// All arrays of an .npy or .npz file. Throws FileError naming the file and what is wrong: neither of both, damaged,
/// a type other than floats, in Fortran's order, or more than 1 GB.
std::vector<NamedArray> read_arrays(const std::string& path);
/// The numbers of an array of f2, f4 or f8, little-endian, as floats. Throws FileError for another type.
std::vector<float> floats_of(const NamedArray& array, const std::string& path);

}  // namespace tapehead
