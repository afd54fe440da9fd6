#include "train/checkpoint_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "tests/train/hostile_file.h"
#include "train/files.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using test::lines_of;
using test::little_endian;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StoredTensor tensor(const std::string& name, const std::vector<float>& values, std::vector<std::int64_t> shape) {
  StoredTensor stored{name, std::move(shape), std::vector<std::uint8_t>(values.size() * sizeof(float))};
  std::memcpy(stored.bytes.data(), values.data(), stored.bytes.size());
  return stored;
}

CheckpointFile example() {
  CheckpointFile file;
  file.config = Config::defaults("copy");
  file.config.set("data.symbols=3");
  file.config.set("data.length=4");
  file.vocabulary = make_task("copy", file.config.data)->vocabulary().tokens();
  file.config.model.vocabulary = 4;
  file.parameters = {tensor("head.weight", {1, -2, 0.1f, 4, 5, 6}, {2, 3}), tensor("scale", {7}, {})};
  file.step = 25;
  file.loss = 1.0 / 3;
  file.exact_match = 0.5;
  file.token_accuracy = kNan;
  file.training =
      TrainingState{50, 25, 0.5, 0.75, kNan, {tensor("adamw.m.head.weight", {0, 0, 0, 0, 0, 1e-30f}, {2, 3})}};
  return file;
}

class Checkpoint : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("x.ckpt");

  std::string refusal() {
    const std::string message = error_of<FileError>([&] { CheckpointFile::load(path); });
    EXPECT_TRUE(contains(message, path)) << message;
    EXPECT_EQ(lines_of(message), 1) << message;
    return message;
  }
  // The message for the example's payload with `bytes` from `at` on.
  std::string refusal_of_patched(std::size_t at, const std::string& bytes) {
    example().save(path);
    std::string payload = test::payload_of(path);
    payload.replace(at, bytes.size(), bytes);
    test::write_hostile(path, "TAPEHEAD", payload);
    return refusal();
  }
  // Where in the example's payload `text` ends.
  std::size_t after(const std::string& text) {
    example().save(path);
    const std::size_t at = test::payload_of(path).find(text);
    EXPECT_NE(at, std::string::npos);
    return at + text.size();
  }
};

TEST_F(Checkpoint, GivesBackWhatWasSaved) {
  for (const bool with_training : {true, false}) {
    CheckpointFile saved = example();
    if (!with_training) saved.training.reset();
    saved.save(path);
    const CheckpointFile loaded = CheckpointFile::load(path);
    EXPECT_EQ(loaded.config, saved.config);
    EXPECT_EQ(loaded.vocabulary, saved.vocabulary);
    EXPECT_EQ(loaded.width, 4);
    EXPECT_EQ(loaded.parameters, saved.parameters);
    EXPECT_EQ(loaded.step, 25u);
    EXPECT_EQ(loaded.loss, 1.0 / 3);
    EXPECT_EQ(loaded.exact_match, 0.5);
    EXPECT_TRUE(std::isnan(loaded.token_accuracy));
    ASSERT_EQ(loaded.training.has_value(), with_training);
    if (!with_training) continue;
    EXPECT_EQ(loaded.training->step, 50u);
    EXPECT_EQ(loaded.training->best_metric, 0.5);
    EXPECT_EQ(loaded.training->best_step, 25u);
    EXPECT_EQ(loaded.training->best_token_accuracy, 0.75);
    EXPECT_TRUE(std::isnan(loaded.training->best_loss));
    EXPECT_EQ(loaded.training->moments, saved.training->moments);
  }
}

// The vocabulary travels in the file, whatever the model config says before.
TEST_F(Checkpoint, CarriesItsVocabulary_F53) {
  CheckpointFile saved = example();
  saved.config.model.vocabulary = 0;
  saved.save(path);
  EXPECT_EQ(CheckpointFile::load(path).config.model.vocabulary, 4);
  saved.vocabulary[1] = "z";
  EXPECT_TRUE(contains(error_of<FileError>([&] { saved.save(path); }), "vocabulary"));
  saved = example();
  saved.config.model.vocabulary = 5;
  EXPECT_TRUE(contains(error_of<FileError>([&] { saved.save(path); }), "model.vocabulary is 5"));
}

TEST_F(Checkpoint, SameContentsAreTheSameBytes_F41) {
  example().save(path);
  // What lay in memory before must not show: an object built in dirty storage.
  alignas(CheckpointFile) unsigned char storage[sizeof(CheckpointFile)];
  std::memset(storage, 0xa5, sizeof storage);
  auto* dirty = new (storage) CheckpointFile(example());
  dirty->save(folder.file("y.ckpt"));
  dirty->~CheckpointFile();
  EXPECT_EQ(read_file(path), read_file(folder.file("y.ckpt")));
  CheckpointFile::load(path).save(folder.file("z.ckpt"));
  EXPECT_EQ(read_file(path), read_file(folder.file("z.ckpt")));
}

// Written out by hand from the table in checkpoints/README.md: the format does not depend on the machine.
TEST_F(Checkpoint, IsTheFormatOfThePage_F41) {
  const auto text = [](const std::string& s) { return little_endian(s.size(), 8) + s; };
  const auto number = [](double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return little_endian(bits, 8);
  };
  CheckpointFile file = example();
  file.token_accuracy = 1;
  file.parameters = {tensor("w", {1.5f, -2}, {1, 2})};
  file.training = TrainingState{50, 25, 0.5, 0.75, 1e-3, {}};
  std::string payload = "\x01" + text(file.config.to_toml());
  payload += little_endian(4, 8) + text("a") + text("b") + text("c") + text("|");
  payload += little_endian(4, 1) + little_endian(25, 8) + number(1.0 / 3) + number(0.5) + number(1);
  payload += little_endian(1, 8) + text("w") + little_endian(2, 8) + little_endian(1, 8) + little_endian(2, 8);
  payload += little_endian(8, 8) + little_endian(0x3fc00000, 4) + little_endian(0xc0000000, 4);
  payload += little_endian(1, 1) + little_endian(50, 8) + little_endian(25, 8) + number(0.5) + number(0.75) +
             number(1e-3) + little_endian(0, 8);
  test::write_hostile(folder.file("by_hand.ckpt"), "TAPEHEAD", payload);
  file.save(path);
  EXPECT_EQ(read_file(path), read_file(folder.file("by_hand.ckpt")));
}

TEST_F(Checkpoint, RefusesEveryTruncation) {
  example().save(path);
  const std::string whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_plainly(path, whole.substr(0, size));
    const std::string message = refusal();
    EXPECT_TRUE(contains(message, size < 8 ? "is not a Tapehead checkpoint file" : "is truncated")) << message;
  }
  test::write_plainly(path, whole + "x");
  EXPECT_TRUE(contains(refusal(), "1 bytes follow its end"));
}

TEST_F(Checkpoint, RefusesEveryFlippedBit) {
  example().save(path);
  const std::string whole = read_file(path);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    test::write_plainly(path, flipped);
    refusal();
  }
}

TEST_F(Checkpoint, RefusesForeignAndNewerFiles) {
  test::write_plainly(path, std::string("\x89PNG\r\n\x1a\n") + std::string(100, 'x'));
  EXPECT_EQ(refusal(), "[checkpoint] " + path + " is not a Tapehead checkpoint file.");
  example().save(path);
  std::string newer = read_file(path);
  newer[8] = 2;
  test::write_plainly(path, newer);
  EXPECT_EQ(refusal(), "[checkpoint] " + path + " has format version 2, newer than 1. Hint: use a newer Tapehead.");
}

TEST_F(Checkpoint, RefusesWhatIsNotAFile) {
  EXPECT_EQ(refusal(), "[checkpoint] cannot read " + path + ": No such file or directory.");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // opening it would wait for a writer
  EXPECT_EQ(refusal(), "[checkpoint] " + path + " is not a file.");
  path = folder.path();
  EXPECT_EQ(refusal(), "[checkpoint] " + path + " is not a file.");
}

// Sizes that a naive reader would allocate, or whose product wraps to something small; the checksum is right.
TEST_F(Checkpoint, RefusesAbsurdSizesBeforeAllocating_F33) {
  const std::size_t shape = after("head.weight");
  const std::string huge = little_endian(std::uint64_t{1} << 32, 8), all = little_endian(~std::uint64_t{0}, 8);
  EXPECT_TRUE(contains(refusal_of_patched(shape + 8, huge + huge), "impossible shape [4294967296, 4294967296]"));
  EXPECT_TRUE(contains(refusal_of_patched(shape + 8, all), "impossible shape [-1, 3]"));
  EXPECT_TRUE(contains(refusal_of_patched(shape + 8, little_endian(0, 8)), "impossible shape [0, 3]"));
  EXPECT_TRUE(contains(refusal_of_patched(shape + 8, little_endian(3, 8)), "24 bytes, expected 36"));
  EXPECT_TRUE(contains(refusal_of_patched(shape, all), "parameters[0].shape has 18446744073709551615 items"));
  EXPECT_TRUE(
      contains(refusal_of_patched(shape, little_endian((std::uint64_t{1} << 61) + 1, 8)), "more than the file"));
  EXPECT_TRUE(contains(refusal_of_patched(shape + 24, all), "parameters[0].bytes has 18446744073709551615 items"));
  EXPECT_TRUE(contains(refusal_of_patched(shape - 11 - 8, all), "parameters[0].name has"));
  EXPECT_TRUE(contains(refusal_of_patched(shape - 11 - 16, all), "parameters has 18446744073709551615 items"));
  EXPECT_TRUE(contains(refusal_of_patched(shape - 11 - 16, little_endian(200, 8)), "parameters"));
  EXPECT_TRUE(contains(refusal_of_patched(1, all), "config has 18446744073709551615 items"));
}

// A count that the bytes allow, though they hold no such items, costs no more memory than the items that are there.
TEST_F(Checkpoint, EveryCutOfThePayloadIsRefused_F33) {
  example().save(path);
  const std::string payload = test::payload_of(path);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    test::write_hostile(path, "TAPEHEAD", payload.substr(0, size));
    EXPECT_TRUE(contains(refusal(), "is damaged: "));
  }
  test::write_hostile(path, "TAPEHEAD", payload + "x");
  EXPECT_TRUE(contains(refusal(), "is followed by 1 bytes"));
}

// Any byte may be wrong while the checksum is right: a clear refusal or a file that holds together, never a crash.
TEST_F(Checkpoint, SurvivesEveryChangedByteUnderARightChecksum_F33) {
  example().save(path);
  const std::string payload = test::payload_of(path);
  int refused = 0;
  for (std::size_t at = 0; at < payload.size(); ++at)
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::string changed = payload;
      changed[at] = static_cast<char>(value);
      test::write_hostile(path, "TAPEHEAD", changed);
      try {
        CheckpointFile::load(path);
      } catch (const FileError& error) {
        ++refused;
        EXPECT_TRUE(contains(error.what(), path)) << error.what();
      }
    }
  EXPECT_GT(refused, 500);
}

TEST_F(Checkpoint, RefusesContentsThatDoNotHoldTogether) {
  const auto refused = [&](auto change) {
    CheckpointFile file = example();
    change(file);
    const std::string message = error_of<FileError>([&] { file.save(path); });
    EXPECT_EQ(folder.listing(), "") << "wrote it all the same";
    return message;
  };
  EXPECT_EQ(refused([](CheckpointFile& f) { f.parameters[1].name = "head.weight"; }),
            "[checkpoint] cannot save " + path + ": parameter 'head.weight' is nameless or there twice.");
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.parameters[0].name.clear(); }), "parameter ''"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.width = 2; }), "width is 2, expected 4 or 8"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.width = 8; }), "has 24 bytes, expected 48"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.parameters[0].shape.assign(9, 1); }), "has 9 axes"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.exact_match = 1.5; }), "outside [0, 1]"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.step = 1001; }), "step 1001 is beyond train.steps 1000"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.training->step = 1001; }), "training.step 1001"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.training->best_step = 51; }), "training.best_step"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.training->best_metric = -1; }), "training.best_metric"));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.training->moments[0].shape[0] = 3; }), "moment "));
  EXPECT_TRUE(contains(refused([](CheckpointFile& f) { f.vocabulary.pop_back(); }), "vocabulary"));
}

TEST_F(Checkpoint, RefusesAConfigThatDoesNotHoldTogether) {
  EXPECT_TRUE(contains(refusal_of_patched(after("heads = ") - 1, "=5"), "config line 8: "));
  const std::string message = refusal_of_patched(after("heads = "), "5");
  EXPECT_TRUE(contains(message, "model.width 64 is not divisible by model.heads 5")) << message;
  EXPECT_TRUE(contains(refusal_of_patched(after("task = \""), "kopy"), "unknown task 'kopy'"));
  EXPECT_TRUE(contains(refusal_of_patched(after("symbols = "), "2"), "vocabulary"));
}

TEST_F(Checkpoint, AFailedSaveLeavesTheOldFile_F37) {
  example().save(path);
  const std::string before = read_file(path);
  CheckpointFile bad = example();
  bad.width = 3;
  error_of<FileError>([&] { bad.save(path); });
  EXPECT_EQ(read_file(path), before);
  EXPECT_TRUE(contains(error_of<FileError>([&] { example().save(folder.file("none/x.ckpt")); }), "cannot write"));
  EXPECT_EQ(folder.listing(), "x.ckpt");
}

TEST(Differences, ListsEveryOne_F35) {
  const std::vector<NamedShape> model = {{"head.weight", {65, 256}},
                                         {"blocks.3.norm1.weight", {256}},
                                         {"blocks.4.norm1.weight", {256}},
                                         {"pos.weight", {8, 256}},
                                         {"scale", {}}};
  const std::vector<StoredTensor> file = {{"extra.b", {1}, {}},
                                          {"head.weight", {65, 128}, {}},
                                          {"extra.a", {1}, {}},
                                          {"pos.weight", {256, 8}, {}},
                                          {"scale", {}, {}}};
  EXPECT_EQ(differences(model, file),
            "missing blocks.3.norm1.weight, blocks.4.norm1.weight; unexpected extra.b, extra.a; "
            "head.weight is [65, 128], expected [65, 256]; pos.weight is [256, 8], expected [8, 256]");
  EXPECT_EQ(differences({}, {}), "");
  EXPECT_EQ(differences({{"a", {1}}, {"b", {2}}}, {{"b", {2}, {}}, {"a", {1}, {}}}), "");
  EXPECT_EQ(differences({{"a", {4}}}, {{"a", {2, 2}, {}}}), "a is [2, 2], expected [4]");
}

}  // namespace
}  // namespace tapehead
