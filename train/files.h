// Whole files in and out, such that a crash or a full disk leaves the old contents or the new ones.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tapehead {

/// The whole file. Throws FileError when it cannot be read, is a folder or holds more than `limit` bytes.
std::string read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);

/// Writes beside `path`, syncs, renames over it and syncs the folder. On failure throws FileError with the file as it
/// was and nothing left beside it.
void write_file_atomically(const std::string& path, std::string_view contents);

/// Throws FileError when write_file_atomically could not write `path`: asked before work whose result goes there.
void require_writable(const std::string& path);

/// True for the name that write_file_atomically gives its half-written neighbour of `file`: what a killed process
/// leaves behind.
bool is_temporary_of(std::string_view name, std::string_view file);

/// The text of an errno value.
std::string system_message(int error);

}  // namespace tapehead
