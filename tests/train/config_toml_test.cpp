#include <gtest/gtest.h>

#include <algorithm>

#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "train/config.h"
#include "train/files.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using test::lines_of;

Config parsed(const std::string& text, const std::string& task = "") {
  Config config;
  if (!task.empty()) config = Config::defaults(task);
  config.parse_toml(text, "x.toml");
  return config;
}

std::string refusal(const std::string& text, const std::string& task = "copy") {
  Config config;
  if (!task.empty()) config = Config::defaults(task);
  const Config before = config;
  const std::string message = error_of<ConfigError>([&] { config.parse_toml(text, "x.toml"); });
  EXPECT_EQ(config, before) << "a refused file changed the config";
  return message;
}

TEST(ConfigToml, ReadsAFileOverThePresentValues) {
  const Config config = parsed(
      "task = 'lookup'\nseed = 3\n[model]\nkind = \"encoder-decoder\"\ntie_embeddings = false\n[train]\nclip = 2\n"
      "learning_rate = 1e-3\n[data]\npairs = 5\n");
  EXPECT_EQ(config.task, "lookup");
  EXPECT_EQ(config.seed, 3u);
  EXPECT_EQ(config.model.kind, ModelKind::encoder_decoder);
  EXPECT_FALSE(config.model.tie_embeddings);
  EXPECT_EQ(config.train.clip, 2);
  EXPECT_EQ(config.train.learning_rate, 1e-3);
  EXPECT_EQ(config.data[0].value, 5);
  EXPECT_EQ(config.data[1].value, 16);
  EXPECT_EQ(config.model.init_std, Config::defaults("lookup").model.init_std);
  EXPECT_EQ(parsed("model.heads = 2", "copy").model.heads, 2);  // a dotted key is a table, too
  EXPECT_EQ(parsed("", "copy"), Config::defaults("copy"));
}

TEST(ConfigToml, RoundTripIsTheIdentity) {
  for (const TaskEntry& entry : tasks())
    EXPECT_EQ(parsed(Config::defaults(entry.name).to_toml()), Config::defaults(entry.name));
  Config config = Config::defaults("lookup");
  config.seed = 9007199254740991;
  config.model.kind = ModelKind::encoder_decoder;
  config.model.positions = PositionKind::none;
  config.model.norm_order = NormOrder::post;
  config.model.activation = ActivationKind::silu;
  config.model.tie_embeddings = config.model.bias = false;
  config.data[1].value = 26;
  // Doubles that a fixed number of digits would spoil.
  for (const double value : {0.1 + 0.2, 1.0 / 3, 5e-324, 2.2250738585072014e-308, 999.9999999999999, 1e-17, 1.0}) {
    config.train.learning_rate = std::max(value, 1e-30);  // what is 0 in single precision is refused above 0
    config.train.min_learning_rate = value / 2;
    config.train.eps = std::clamp(value, 1e-30, 1.0);
    EXPECT_EQ(parsed(config.to_toml()), config) << config.to_toml();
  }
}

TEST(ConfigToml, RoundTripsThroughAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("config.toml");
  write_file_atomically(path, Config::defaults("copy").to_toml());
  Config config;
  config.read_toml(path);
  EXPECT_EQ(config, Config::defaults("copy"));
}

TEST(ConfigToml, CollectsEveryProblemInTheOrderOfTheFile) {
  EXPECT_EQ(refusal("seed = 'x'\n[train]\nstep = 5\nbatch = 0\nclip = true\n[model]\nheads = 2.0\nkind = 1\n"
                    "[data]\nlength = 'long'\n[extra]\na = 1\n"),
            "[config] x.toml line 1: seed is 'x', expected a whole number.\n"
            "[config] x.toml line 3: unknown key 'train.step'. Did you mean 'train.steps'?\n"
            "[config] x.toml line 4: train.batch is 0, outside [1, 65536].\n"
            "[config] x.toml line 5: train.clip is true, expected a number.\n"
            "[config] x.toml line 7: model.heads is 2, expected a whole number.\n"
            "[config] x.toml line 8: model.kind is 1, expected one of decoder, encoder, encoder-decoder.\n"
            "[config] x.toml line 10: data.length is 'long', expected a whole number.\n"
            "[config] x.toml line 11: unknown key 'extra'.");
}

TEST(ConfigToml, AProblemKeepsTheSoundSettingsOutToo) {
  EXPECT_TRUE(contains(refusal("seed = 5\n[data]\nlength = 3\n[model]\nlayers = 0\n"), "model.layers is 0"));
}

TEST(ConfigToml, RefusesValuesThatAreNoNumbers) {
  EXPECT_TRUE(contains(refusal("[train]\nclip = nan"), "train.clip is nan, outside"));
  EXPECT_TRUE(contains(refusal("[train]\nclip = -inf"), "train.clip is -inf, outside"));
  EXPECT_TRUE(contains(refusal("[model]\nheads = [1, 2]"), "model.heads is an array, expected a whole number"));
  EXPECT_TRUE(contains(refusal("seed = 1979-05-27"), "seed is a date or time, expected a whole number"));
  EXPECT_TRUE(contains(refusal("[model]\nheads = 99999999999999999999"), "x.toml line 2"));
}

TEST(ConfigToml, RefusesTablesInTheWrongPlace) {
  EXPECT_TRUE(contains(refusal("model = 3"), "line 1: model is 3, expected a table [model]"));
  EXPECT_TRUE(contains(refusal("[[train]]\nsteps = 3"), "train is an array, expected a table [train]"));
  EXPECT_TRUE(contains(refusal("[model.heads]\na = 1"), "model.heads is a table, expected a whole number"));
  EXPECT_TRUE(contains(refusal("[model.train]\nsteps = 1"), "unknown key 'model.train'"));
  EXPECT_TRUE(contains(refusal("[seed]\nx = 1"), "seed is a table, expected a whole number"));
  EXPECT_TRUE(contains(refusal("'model.heads' = 2"), "unknown key 'model.heads'"));
  EXPECT_TRUE(contains(refusal("[model]\n'data.length' = 2"), "unknown key 'model.data.length'"));
}

TEST(ConfigToml, RefusesWhatIsNotToml) {
  for (const std::string& text :
       {std::string("[model\nheads = 2"), std::string("heads"), std::string("[model]\nheads = 2\nheads = 3"),
        std::string("[model]\n[model]"), std::string("seed = 1\nseed = 2"), std::string("seed = \"\xff\xfe\""),
        std::string("seed\0 = 1", 9), std::string("\x89PNG\r\n"), "a = " + std::string(5000, '[')}) {
    const std::string message = refusal(text);
    EXPECT_TRUE(contains(message, "[config] x.toml line ")) << message;
    EXPECT_EQ(lines_of(message), 1) << message;
    for (const char c : message) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << message;
  }
}

TEST(ConfigToml, RefusesATableWithoutAName) {
  for (const char* header : {"[=]", "[", "[]", "[[]]", "[[[x]]]", "  [ \t!x]", "[[ .a]]", "[\x01]", "[\xc3\xa9]"})
    EXPECT_EQ(refusal(std::string("seed = 1\n") + header),
              "[config] x.toml line 2: expected the name of a table after [.");
  EXPECT_TRUE(contains(refusal("\xef\xbb\xbf[=]"), "line 1: expected the name of a table"));
  EXPECT_EQ(parsed("\xef\xbb\xbf[ model ]\nheads = 2\n  [\"train\"]\n", "copy").model.heads, 2);
}

// Nothing that a slip of the hand or a damaged disk can do to a file may crash the reader.
TEST(ConfigToml, SurvivesEveryChangedByte) {
  const std::string text = Config::defaults("copy").to_toml();
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const char byte :
         {'\0', '\n', ' ', '"', '\'', '[', ']', '{', '=', '#', '\\', '\x7f', '\xff', '\x81', 'e', '9'}) {
      std::string changed = text;
      changed[at] = byte;
      Config config;
      try {
        config.parse_toml(changed, "x.toml");
      } catch (const ConfigError& error) {
        EXPECT_TRUE(contains(error.what(), "[config] x.toml line ") || contains(error.what(), "[task]"))
            << error.what();
      }
    }
}

TEST(ConfigToml, TheTaskOfAFileMustBeKnownAndTheOneAskedFor) {
  EXPECT_EQ(refusal("task = 'lookup'"), "[config] x.toml line 1: task is 'lookup', but 'copy' was asked for.");
  EXPECT_EQ(refusal("task = 3"), "[config] x.toml line 1: task is 3, expected the name of a task.");
  EXPECT_TRUE(contains(refusal("seed = 1", ""), "no task is named"));
  // Settings of a task that nobody knows are not held against the file as well.
  EXPECT_EQ(refusal("task = 'cpoy'\n[model]\nheads = 0\n[data]\nlength = 3\n", ""),
            "[task] unknown task 'cpoy'. Did you mean 'copy'?\n"
            "[config] x.toml line 3: model.heads is 0, outside [1, 1024].");
}

TEST(ConfigToml, NamesAFileThatCannotBeRead) {
  const test::TemporaryFolder folder;
  Config config = Config::defaults("copy");
  const auto refused = [&](const std::string& path) { return error_of<FileError>([&] { config.read_toml(path); }); };
  EXPECT_EQ(refused(folder.file("none.toml")),
            "[file] cannot read " + folder.file("none.toml") + ": No such file or directory.");
  EXPECT_TRUE(contains(refused(folder.path()), "Is a directory"));
  EXPECT_TRUE(contains(refused("/dev/zero"), "holds more than 1048576 bytes"));
}

}  // namespace
}  // namespace tapehead
