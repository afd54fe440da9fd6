// Learning a file of text: train --data, its checkpoint, and what is refused before anything is created.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/errors.h"
#include "tests/tools/process.h"

namespace tapehead {
namespace {

using nlohmann::json;
using test::contains;
using test::Finished;
using test::Words;

class TextTest : public test::CommandTest {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the quick brown fox\njumps over it. ";
    write_file_atomically(folder.file("fox.txt"), text);
  }
  static Words training(const Words& more) {
    Words words = {"train", "--data", "fox.txt", "--threads", "1", "--quiet", "--json"};
    for (const char* setting : {"model.layers=1", "model.width=16", "model.heads=2", "data.length=16", "train.batch=8",
                                "train.warmup=2", "train.learning_rate=0.01", "train.eval_every=10"})
      words.insert(words.end(), {"--set", setting});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(TextTest, LearnsAndKeepsItsVocabularyInTheCheckpoint) {
  const Finished trained = run(training({"--steps", "60", "--out", "run"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const json answer = json::parse(trained.out);
  EXPECT_EQ(answer.at("task"), "text");
  EXPECT_LT(answer.at("loss"), 2.5);  // 26 characters: guessing has ln 26 = 3.3
  const Finished held = run({"eval", "run", "--data", "fox.txt", "--json"});
  ASSERT_EQ(held.code, 0) << held.err;
  EXPECT_NEAR(json::parse(held.out).at("loss"), answer.at("loss"), 0.1);
  EXPECT_EQ(run({"info", "run"}).code, 0);
  const Finished alone = run({"eval", "run"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.err, "[text] the text is missing. Hint: give it with --data FILE.\n");
}

TEST_F(TextTest, GoesOnToTheSameBytesAndWithNoOtherText) {
  ASSERT_EQ(run(training({"--steps", "20", "--out", "whole"})).code, 0);
  ASSERT_EQ(run(training({"--steps", "20", "--out", "parts", "--stop-at", "7"})).code, 0);
  write_file_atomically(folder.file("other.txt"), read_file(folder.file("fox.txt")) + "x");
  const Finished other = run({"train", "--resume", "parts", "--data", "other.txt", "--quiet"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "this is not the text of this run")) << other.err;
  EXPECT_EQ(run({"train", "--resume", "parts", "--quiet"}).code, 2);
  const Finished resumed = run({"train", "--resume", "parts", "--data", "fox.txt", "--threads", "2", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  for (const char* file : {"/last.ckpt", "/best.ckpt"})
    EXPECT_TRUE(read_file(folder.file(std::string("whole") + file)) ==
                read_file(folder.file(std::string("parts") + file)))
        << file;
}

TEST_F(TextTest, RefusesWhatIsNoTextBeforeAnythingIsCreated_F55) {
  const std::pair<std::string, std::string> files[] = {{"", "is empty"},
                                                       {std::string("a\0b", 3), "holds a NUL at byte 1"},
                                                       {"caf\xe9", "is not UTF-8 at byte 3"},
                                                       {"short", "a window needs 17"}};
  for (const auto& [bytes, fact] : files) {
    write_file_atomically(folder.file("bad.txt"), bytes);
    const Finished refused = run({"train", "--data", "bad.txt", "--set", "data.length=16", "--out", "run"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(test::lines_of(refused.err), 2) << refused.err;  // one, and the end of it
    EXPECT_TRUE(contains(refused.err, fact)) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("run")));
  }
}

// A text may hold what a terminal would obey; a file receives it as it is.
TEST_F(TextTest, ReachesATerminalWithoutControlCharacters) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\x1b[2J\n";
  write_file_atomically(folder.file("fox.txt"), text);
  ASSERT_EQ(run(training({"--steps", "30", "--out", "run"})).code, 0);
  const Words words = {"generate", "run", "--prompt", "[2J", "--tokens", "20"};
  const std::string plain = run(words).out, shown = test::shown_on_a_terminal(words, folder.path());
  EXPECT_TRUE(contains(plain, "\x1b")) << plain;
  EXPECT_FALSE(contains(shown, "\x1b")) << shown;
  EXPECT_TRUE(contains(shown, "\\x1b[2J")) << shown;
}

TEST_F(TextTest, IsReadAsASequenceOfOnesOwn) {
  ASSERT_EQ(run(training({"--steps", "10", "--out", "run"})).code, 0);
  const Finished shown = run({"inspect", "run", "--data", "fox.txt", "--input", "fox jumps"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.out, "8:s")) << shown.out;
  const Finished longer = run({"inspect", "run", "--data", "fox.txt", "--input", "the quick brown fox"});
  EXPECT_EQ(longer.code, 2);
  EXPECT_TRUE(contains(longer.err, "the sequence has 19 characters, the context holds 16")) << longer.err;
  const Finished unknown = run({"inspect", "run", "--data", "fox.txt", "--input", "f\u00f6x"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "'\\u{f6}'")) << unknown.err;
}

TEST_F(TextTest, IsLearnedByADecoderAlone) {
  for (const char* kind : {"encoder", "encoder-decoder"}) {
    const Finished refused = run(training({"--set", std::string("model.kind=") + kind}));
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err, std::string("[config] model.kind is ") + kind + ", only a decoder learns text.\n");
  }
}

TEST_F(TextTest, IsNotGivenToAModelOfAnotherTask) {
  ASSERT_EQ(run(tiny("copy", {"--quiet", "--no-report"})).code, 0);
  const Finished refused = run({"eval", "copy", "--data", "fox.txt"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "is a model of copy, which reads no text")) << refused.err;
}

TEST_F(TextTest, StartsOnTinyShakespeare) {
  const char* data = std::getenv("TAPEHEAD_DATA");
  if (!data) GTEST_SKIP() << "TAPEHEAD_DATA names no folder with tinyshakespeare.txt";
  const std::string file = std::string(data) + "/tinyshakespeare.txt";
  const Finished trained = run({"train", "--data", file, "--steps", "3", "--out", "run", "--quiet", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(json::parse(trained.out).at("parameters"), 804096);  // 65 characters
}

}  // namespace
}  // namespace tapehead
