// The page's parts as the program carries them; page.cpp is made by CMake (tools/inspect/embed_page.cmake).
#pragma once

#include <string_view>

namespace tapehead::page {

extern const std::string_view kTemplate, kStyle, kScript;
extern const std::string_view kStyleHash, kScriptHash;  // "sha256-...", as a Content-Security-Policy names them

}  // namespace tapehead::page
