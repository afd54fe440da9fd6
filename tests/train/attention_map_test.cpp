#include "train/attention_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "tests/train/hostile_file.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;

AttentionMap cross_map() {
  AttentionMap map;
  map.kind = "cross";
  map.layer = 1;
  map.head = 3;
  map.rows = 2;
  map.columns = 3;
  map.weights = {0.25f, 0.5f, 0.25f, 1, 0, 0};
  map.visible = {1, 1, 1, 1, 0, 0};
  map.row_tokens = {"|", "c"};
  map.column_tokens = {"c7", "a3", "d0"};
  map.ideal = {-1, 0};
  return map;
}

std::vector<Snapshot> example() {
  AttentionMap unknown = cross_map();
  unknown.kind = "decoder";
  unknown.ideal.clear();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {{0, nan, 0.125, {cross_map(), unknown}}, {50, 1.0 / 3, nan, {}}};
}

class Snapshots : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("snapshots.bin");
  std::string refusal() {
    const std::string message = error_of<FileError>([&] { load_snapshots(path); });
    EXPECT_TRUE(contains(message, path)) << message;
    return message;
  }
};

TEST_F(Snapshots, GiveBackWhatWasSaved) {
  save_snapshots(path, example());
  const auto loaded = load_snapshots(path);
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[0].step, 0u);
  EXPECT_TRUE(std::isnan(loaded[0].loss));
  EXPECT_EQ(loaded[0].exact_match, 0.125);
  EXPECT_EQ(loaded[1].step, 50u);
  EXPECT_EQ(loaded[1].loss, 1.0 / 3);
  EXPECT_TRUE(loaded[1].maps.empty());
  ASSERT_EQ(loaded[0].maps.size(), 2u);
  const AttentionMap &map = loaded[0].maps[0], saved = cross_map();
  EXPECT_EQ(map.kind, "cross");
  EXPECT_EQ(map.layer, 1);
  EXPECT_EQ(map.head, 3);
  EXPECT_EQ(map.rows, 2);
  EXPECT_EQ(map.columns, 3);
  EXPECT_EQ(map.weights, saved.weights);
  EXPECT_EQ(map.visible, saved.visible);
  EXPECT_EQ(map.row_tokens, saved.row_tokens);
  EXPECT_EQ(map.column_tokens, saved.column_tokens);
  EXPECT_EQ(map.ideal, saved.ideal);
  EXPECT_TRUE(loaded[0].maps[1].ideal.empty());
  save_snapshots(path, {});
  EXPECT_TRUE(load_snapshots(path).empty());
}

TEST_F(Snapshots, RefuseEveryTruncationAndFlippedBit) {
  save_snapshots(path, example());
  const std::string whole = read_file(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    test::write_plainly(path, whole.substr(0, at));
    refusal();
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    test::write_plainly(path, flipped);
    refusal();
  }
}

TEST_F(Snapshots, AreNotCheckpoints) {
  test::write_hostile(path, "TAPEHEAD", test::little_endian(1, 1) + test::little_endian(0, 8));
  EXPECT_EQ(refusal(), "[snapshots] " + path + " is not a Tapehead snapshots file.");
}

TEST_F(Snapshots, SurviveEveryChangedByteUnderARightChecksum_F33) {
  save_snapshots(path, example());
  const std::string payload = test::payload_of(path);
  for (std::size_t at = 0; at < payload.size(); ++at)
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::string changed = payload;
      changed[at] = static_cast<char>(value);
      test::write_hostile(path, "TAPEMAPS", changed);
      try {
        load_snapshots(path);
      } catch (const FileError&) {
      }
    }
  for (std::size_t size = 0; size < payload.size(); ++size) {
    test::write_hostile(path, "TAPEMAPS", payload.substr(0, size));
    EXPECT_TRUE(contains(refusal(), "is damaged: "));
  }
}

TEST_F(Snapshots, RefuseMapsThatDoNotHoldTogether) {
  const auto refused = [&](auto change) {
    std::vector<Snapshot> snapshots = example();
    change(snapshots[0].maps[0]);
    return error_of<FileError>([&] { save_snapshots(path, snapshots); });
  };
  EXPECT_EQ(refused([](AttentionMap& m) { m.kind = "self"; }),
            "[snapshots] " + path + " holds a map whose kind is unknown.");
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.head = -1; }), "layer or head"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.rows = 0; }), "rows or columns"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.columns = 2; }), "weights"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.visible.pop_back(); }), "visible"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.row_tokens.pop_back(); }), "tokens"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.ideal.pop_back(); }), "ideal is not one"));
  EXPECT_TRUE(contains(refused([](AttentionMap& m) { m.ideal[1] = 3; }), "ideal is outside"));
}

TEST(PatternMatch, IsTheMeanWeightOnTheIdealColumn) {
  AttentionMap map = cross_map();
  EXPECT_EQ(pattern_match(map), 1);
  map.ideal = {1, 0};
  EXPECT_EQ(pattern_match(map), 0.75);
  map.ideal = {2, 2};
  EXPECT_EQ(pattern_match(map), 0.125);
  map.ideal = {-1, -1};
  EXPECT_TRUE(std::isnan(pattern_match(map)));
  map.ideal.clear();
  EXPECT_TRUE(std::isnan(pattern_match(map)));
}

}  // namespace
}  // namespace tapehead
