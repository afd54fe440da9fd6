#include "train/attention_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/errors.h"
#include "tests/temporary_folder.h"
#include "tests/train/hostile_file.h"
#include "tests/train/small_map.h"

namespace tapehead {
namespace {

using test::contains;
using test::cross_map;
using test::error_of;

AttentionHistory example() {
  AttentionMap unknown = cross_map();
  unknown.kind = "decoder";
  unknown.ideal.clear();
  unknown.weights = {1, 0, 0, 0.1f, 0, 0};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  AttentionHistory history;
  history.add({0, nan, 0.125, {cross_map(), unknown}}, SnapshotReason::grid);
  history.add({50, 1.0 / 3, nan, {cross_map(), unknown}}, SnapshotReason::loss_drop);
  history.tensors = {{"w", {2, 1}}};
  history.snapshots[1].parameters = {1, 2, 3, 4, 5, 6, 7, 8};
  return history;
}

class Snapshots : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("snapshots.bin");
  std::string refusal() {
    const std::string message = error_of<FileError>([&] { AttentionHistory::load(path); });
    EXPECT_TRUE(contains(message, path)) << message;
    return message;
  }
};

TEST_F(Snapshots, GiveBackWhatWasSaved) {
  example().save(path);
  const AttentionHistory loaded = AttentionHistory::load(path);
  ASSERT_EQ(loaded.size(), 2u);
  const std::vector<Snapshot> all = loaded.all();
  EXPECT_EQ(all[0].step, 0u);
  EXPECT_TRUE(std::isnan(all[0].loss));
  EXPECT_EQ(all[0].exact_match, 0.125);
  EXPECT_EQ(all[1].step, 50u);
  EXPECT_EQ(all[1].loss, 1.0 / 3);
  EXPECT_EQ(loaded.snapshots[1].reason, SnapshotReason::loss_drop);
  ASSERT_EQ(all[0].maps.size(), 2u);
  const AttentionMap &map = all[0].maps[0], saved = cross_map();
  EXPECT_EQ(map.kind, "cross");
  EXPECT_EQ(map.layer, 1);
  EXPECT_EQ(map.head, 3);
  EXPECT_EQ(map.rows, 2);
  EXPECT_EQ(map.columns, 3);
  EXPECT_EQ(map.visible, saved.visible);
  EXPECT_EQ(map.row_tokens, saved.row_tokens);
  EXPECT_EQ(map.column_tokens, saved.column_tokens);
  EXPECT_EQ(map.ideal, saved.ideal);
  EXPECT_TRUE(all[0].maps[1].ideal.empty());
  ASSERT_EQ(map.weights.size(), saved.weights.size());
  for (std::size_t i = 0; i < map.weights.size(); ++i) EXPECT_NEAR(map.weights[i], saved.weights[i], 0.5 / 65534) << i;
  EXPECT_EQ(map.weights[3], 1);
  EXPECT_EQ(map.weights[4], 0);
}

TEST_F(Snapshots, GiveBackParametersAsInACheckpoint) {
  example().save(path);
  const AttentionHistory loaded = AttentionHistory::load(path);
  EXPECT_TRUE(loaded.parameters_of(loaded.snapshots[0]).empty());
  const StoredTensor expected{"w", {2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(loaded.parameters_of(loaded.snapshots[1]), std::vector<StoredTensor>{expected});
}

TEST_F(Snapshots, MarkWhatIsNoWeight) {
  AttentionMap broken = cross_map();
  broken.weights = {NAN, INFINITY, -0.5f, 1.5f, 0, 0};
  AttentionHistory history;
  history.add({1, 0, 0, {broken}}, SnapshotReason::grid);
  history.save(path);
  const std::vector<float> weights = AttentionHistory::load(path).at(0).maps[0].weights;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(weights[static_cast<std::size_t>(i)])) << i;
  EXPECT_EQ(weights[4], 0);
}

TEST_F(Snapshots, AreOfTheSameHeads) {
  AttentionHistory history = example();
  Snapshot other = history.at(0);
  other.maps[0].row_tokens[0] = "x";
  EXPECT_TRUE(contains(error_of<Error>([&] { history.add(other, SnapshotReason::grid); }), "not those of"));
}

TEST_F(Snapshots, TakeSixteenBitsAVisibleCell) {
  EXPECT_EQ(AttentionHistory::packed_bytes(example().heads), 16u);
  AttentionHistory history = example();
  history.save(path);
  const std::size_t before = read_file(path).size();
  Snapshot more = history.at(1);
  more.step = 51;
  history.add(more, SnapshotReason::grid);
  history.save(path);
  EXPECT_EQ(read_file(path).size() - before, 16u + 8 * 3 + 1 + 2 * 8);  // and step, loss, exact match, reason, counts
}

TEST_F(Snapshots, RefuseEveryTruncationAndFlippedBit) {
  example().save(path);
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
  example().save(path);
  const std::string payload = test::payload_of(path);
  for (std::size_t at = 0; at < payload.size(); ++at)
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::string changed = payload;
      changed[at] = static_cast<char>(value);
      test::write_hostile(path, "TAPEMAPS", changed);
      try {
        AttentionHistory::load(path);
      } catch (const FileError&) {
      }
    }
  for (std::size_t size = 0; size < payload.size(); ++size) {
    test::write_hostile(path, "TAPEMAPS", payload.substr(0, size));
    EXPECT_TRUE(contains(refusal(), "is damaged: "));
  }
}

TEST_F(Snapshots, RefuseWhatDoesNotHoldTogether) {
  const auto refused = [&](auto change) {
    AttentionHistory history = example();
    change(history);
    return error_of<FileError>([&] { history.save(path); });
  };
  const auto map_refused = [&](auto change) { return refused([&](AttentionHistory& h) { change(h.heads[0]); }); };
  EXPECT_EQ(map_refused([](AttentionMap& m) { m.kind = "self"; }),
            "[snapshots] " + path + " holds a map whose kind is unknown.");
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.head = -1; }), "layer or head"));
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.rows = 0; }), "rows or columns"));
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.visible.pop_back(); }), "rows x columns"));
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.row_tokens.pop_back(); }), "tokens"));
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.ideal.pop_back(); }), "ideal is not one"));
  EXPECT_TRUE(contains(map_refused([](AttentionMap& m) { m.ideal[1] = 3; }), "ideal is outside"));
  EXPECT_TRUE(contains(refused([](AttentionHistory& h) { h.snapshots[0].weights.pop_back(); }), "visible cells"));
  EXPECT_TRUE(contains(refused([](AttentionHistory& h) { h.snapshots[1].parameters.pop_back(); }), "parameters"));
  EXPECT_TRUE(contains(refused([](AttentionHistory& h) { h.snapshots[1].step = 0; }), "order"));
  EXPECT_TRUE(contains(refused([](AttentionHistory& h) { h.width = 5; }), "width"));
  EXPECT_TRUE(contains(refused([](AttentionHistory& h) { h.tensors[0].shape[0] = 0; }), "shape"));
}

}  // namespace
}  // namespace tapehead
