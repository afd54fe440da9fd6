#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/errors.h"
#include "train/config.h"
#include "train/files.h"

namespace tapehead {
namespace {

// TAPEHEAD_WRITE_DOCS=1 writes the page instead.
TEST(ConfigReference, ThePageIsUpToDate) {
  const std::string path = TAPEHEAD_SOURCE_DIR "/docs/config.md";
  if (std::getenv("TAPEHEAD_WRITE_DOCS")) write_file_atomically(path, config_reference());
  EXPECT_EQ(read_file(path), config_reference()) << "run this test with TAPEHEAD_WRITE_DOCS=1";
}

TEST(ConfigReference, HasEverySettingOfADefaultFile) {
  for (const TaskEntry& entry : tasks()) {
    std::string table;
    std::istringstream lines(Config::defaults(entry.name).to_toml());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("[")) table = line.substr(1, line.size() - 2) + ".";
      const std::size_t equals = line.find(" = ");
      if (equals == std::string::npos || line.starts_with("task")) continue;
      EXPECT_TRUE(test::contains(config_reference(), "| `" + table + line.substr(0, equals) + "` | ")) << line;
    }
  }
}

}  // namespace
}  // namespace tapehead
