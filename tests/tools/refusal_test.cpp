// What the command refuses: one line a problem on stderr, exit 2, nothing on stdout and nothing started.
#include <filesystem>

#include "tests/errors.h"
#include "tests/tools/process.h"

namespace tapehead {
namespace {

using test::contains;
using test::Finished;
using test::lines_of;
using test::Words;

class RefusalTest : public test::CommandTest {
 protected:
  /// stderr of a call that must be refused in `lines` lines and leave the folder as it is.
  std::string refused(const Words& words, std::ptrdiff_t lines = 1) {
    const std::string before = folder.listing();
    const Finished finished = run(words);
    std::string call;
    for (const std::string& word : words) call += word + ' ';
    EXPECT_EQ(finished.code, 2) << call << '\n' << finished.err;
    EXPECT_EQ(finished.out, "") << call;
    EXPECT_EQ(lines_of(finished.err), lines + 1) << call << '\n' << finished.err;  // the last one ends the text
    EXPECT_EQ(finished.err.substr(0, 1), "[") << finished.err;
    EXPECT_EQ(folder.listing(), before) << call;
    return finished.err;
  }
  void expect_refused(const Words& words, const Words& parts) {
    const std::string error = refused(words);
    for (const std::string& part : parts) EXPECT_TRUE(contains(error, part)) << part << " is not in: " << error;
  }
};

TEST_F(RefusalTest, OfWordsThatAreNoCommand) {
  expect_refused({"trian", "copy"}, {"unknown verb 'trian'", "Did you mean 'train'?"});
  expect_refused({"zzzzzz"}, {"unknown verb 'zzzzzz'", "--help"});
  expect_refused({}, {"subcommand"});
  expect_refused({"train", "copy", "--bogus"}, {"--bogus", "tapehead train --help"});
  expect_refused({"train", "copy", "lookup"}, {"lookup"});
  expect_refused({"train", "--set"}, {"--set"});
  expect_refused({"eval"}, {"model"});
  expect_refused({"generate", "somewhere"}, {"--prompt"});
  expect_refused({"gradcheck", "--set", "model.heads=1"}, {"--set model.heads=1", "without a task"});
}

TEST_F(RefusalTest, OfAnUnknownTask) {
  expect_refused({"train", "cpoy"}, {"cpoy", "Did you mean 'copy'?"});
  expect_refused({"train", "locup", "--out", "r"}, {"locup"});
  expect_refused({"tasks", "lokup"}, {"Did you mean 'lookup'?"});
  expect_refused({"gradcheck", "cpoy"}, {"Did you mean 'copy'?"});
  expect_refused({"train"}, {"neither a task nor a config"});
}

TEST_F(RefusalTest, OfEmptyWords) {
  expect_refused({"train", "copy", "--out", ""}, {"--out", "the value is empty"});
  expect_refused({"train", ""}, {"task", "the value is empty"});
  expect_refused({"generate", "run", "--prompt", ""}, {"--prompt", "the value is empty"});
  expect_refused({"inspect", "run", "--input", ""}, {"--input", "the value is empty"});
}

TEST_F(RefusalTest, OfSettings) {
  expect_refused({"train", "copy", "--set", "model.head=2"}, {"unknown key 'model.head'", "'model.heads'"});
  expect_refused({"train", "copy", "--set", "model.width=wide"}, {"model.width", "'wide'"});
  expect_refused({"train", "copy", "--set", "model.width"}, {"key=value"});
  expect_refused({"train", "copy", "--set", "model.width=-64"}, {"model.width is -64"});
  expect_refused({"train", "copy", "--set", "data.length=0"}, {"length", "0"});
  expect_refused({"train", "copy", "--set", "model.context=3"}, {"model.context 3 is too short"});
  expect_refused({"train", "lookup", "--set", "model.kind=encoder"}, {"model.kind is encoder"});
  expect_refused({"train", "copy", "--set", "model.scoring=cosine", "--set", "model.scale=1"},
                 {"model.scale is 1", "model.scoring is cosine"});
  expect_refused({"train", "lookup", "--set", "data.pairs=20"}, {"data.pairs is 20", "data.keys"});
  expect_refused({"train", "copy", "--steps", "0"}, {"train.steps is 0"});
  expect_refused({"train", "copy", "--steps", "many"}, {"--steps"});
  expect_refused({"train", "copy", "--seed", "-1"}, {"--seed", "-1"});
  expect_refused({"train", "copy", "--seed", "9007199254740993"}, {"--seed", "9007199254740993"});  // 2^53 + 1
  expect_refused({"train", "copy", "--set", "seed=9007199254740993"}, {"seed is 9007199254740993"});
}

TEST_F(RefusalTest, OfHeadsThatDoNotDivideTheWidth_F51) {
  expect_refused({"train", "copy", "--set", "model.width=100", "--set", "model.heads=3"},
                 {"model.width 100 is not divisible by model.heads 3"});
  expect_refused({"train", "copy", "--set", "model.width=2", "--set", "model.heads=8"}, {"heads 8", "width 2"});
  expect_refused({"train", "copy", "--set", "model.heads=0"}, {"model.heads is 0"});
  expect_refused({"train", "copy", "--set", "model.layers=0"}, {"model.layers is 0"});
}

// What no layer is in the end is no problem: settings of all layers count where a layer has none of its own.
TEST_F(RefusalTest, IsNotOfSettingsThatEveryLayerReplaces) {
  for (const Words& settings :
       {Words{"model.layers=1", "model.heads=3", "model.layer.0.heads=2"},
        Words{"model.layers=2", "model.layer.0.heads=4", "model.layer.1.heads=4", "model.share=layers"}}) {
    Words words = tiny("run", {"--force", "--quiet", "--no-report"});
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    EXPECT_EQ(run(words).err, "");
  }
  expect_refused({"train", "copy", "--set", "model.layers=2", "--set", "model.layer.1.heads=3"},
                 {"model.width 64 is not divisible by model.layer.1.heads 3"});
}

TEST_F(RefusalTest, NamesEveryProblemOnALineOfItsOwn) {
  const std::string typed = refused({"train", "copy", "--set", "model.head=2", "--set", "train.steps=x"}, 2);
  EXPECT_TRUE(contains(typed, "model.head'") && contains(typed, "\n[config] train.steps")) << typed;
  const std::string meant = refused(
      {"train", "copy", "--set", "model.width=10", "--set", "model.heads=3", "--set", "train.min_learning_rate=0.5"},
      2);
  EXPECT_TRUE(contains(meant, "not divisible") && contains(meant, "train.min_learning_rate 0.5 is above")) << meant;
}

TEST_F(RefusalTest, OfThreadCounts_F49) {
  for (const char* threads : {"0", "-1", "100000", "x", "1.5", "99999999999999999999"})
    expect_refused({"train", "copy", "--threads", threads}, {"--threads", threads});
}

TEST_F(RefusalTest, OfPlacesThatCannotHoldARun_F37) {
  test::write_plainly(folder.file("file"), "precious");
  expect_refused(tiny("file/run"), {"file/run"});
  expect_refused(tiny("file"), {"is a file, not a folder"});
  expect_refused(tiny("/proc/run"), {"/proc/run"});
  EXPECT_EQ(read_file(folder.file("file")), "precious");
}

TEST_F(RefusalTest, OfAFolderThatHoldsARunUnlessForced) {
  make_run("run");
  const std::string before = read_file(folder.file("run/last.ckpt"));
  expect_refused(tiny("run"), {"run holds a run already", "--resume", "--force"});
  EXPECT_EQ(read_file(folder.file("run/last.ckpt")), before);
  for (const char* setting : {"train.freeze=foo", "model.temperature=1e-300", "model.dropout=0.9999999999"})
    expect_refused({"train", "copy", "--out", "run", "--force", "--set", setting}, {std::string(setting).substr(6, 4)});
  make_run("run", {"--force", "--seed", "2"});
  EXPECT_NE(read_file(folder.file("run/last.ckpt")), before);
}

TEST_F(RefusalTest, OfCheckpointsThatAreNone) {
  make_run("run");
  const std::string whole = read_file(folder.file("run/best.ckpt"));
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 4);
  test::write_plainly(folder.file("flipped.ckpt"), flipped);
  test::write_plainly(folder.file("half.ckpt"), whole.substr(0, whole.size() / 2));
  test::write_plainly(folder.file("foreign.ckpt"), "PK\x03\x04 something else altogether, and long enough");
  test::write_plainly(folder.file("empty.ckpt"), "");
  for (const char* verb : {"eval", "info", "inspect"})
    for (const char* file : {"flipped.ckpt", "half.ckpt", "foreign.ckpt", "empty.ckpt", "missing.ckpt"})
      expect_refused({verb, file}, {file});
  expect_refused({"generate", "half.ckpt", "--prompt", "a b c"}, {"half.ckpt"});
  expect_refused({"eval", "."}, {"holds neither best.ckpt nor last.ckpt"});
  expect_refused({"info", "run/config.toml"}, {"run/config.toml"});
}

TEST_F(RefusalTest, OfResumingWhatIsNotThereOrIsDamaged) {
  expect_refused({"train", "--resume", "nowhere"}, {"nowhere"});
  make_run("run");
  test::write_plainly(folder.file("run/last.ckpt"), "TAPEHEAD");
  expect_refused({"train", "--resume", "run"}, {"run/last.ckpt"});
  std::filesystem::remove(folder.file("run/last.ckpt"));
  expect_refused({"train", "--resume", "run"}, {"run holds no last.ckpt"});
}

TEST_F(RefusalTest, OfResumingWithDamagedMapsUntilTheyAreRemoved) {
  make_run("run", {"--stop-at", "3"});
  test::write_plainly(folder.file("run/snapshots.bin"), "TAPEHEAD");
  expect_refused({"train", "--resume", "run"}, {"run/snapshots.bin", "file. Hint: remove it"});
  expect_refused({"inspect", "run", "--watch"}, {"run/snapshots.bin"});
  std::filesystem::remove(folder.file("run/snapshots.bin"));
  EXPECT_EQ(run({"train", "--resume", "run", "--threads", "1", "--quiet"}).code, 0);
}

TEST_F(RefusalTest, OfChangingARunThatHasBegun) {
  make_run("run", {"--stop-at", "3"});
  const std::string before = read_file(folder.file("run/last.ckpt")), toml = read_file(folder.file("run/config.toml"));
  expect_refused({"train", "--resume", "run", "--seed", "2"}, {"--resume", "--seed"});
  expect_refused({"train", "--resume", "run", "--out", "other"}, {"--out"});
  expect_refused({"train", "--resume", "run", "--force"}, {"--force"});
  expect_refused({"train", "--resume", "run", "--config", "run/config.toml"}, {"--config"});
  expect_refused({"train", "lookup", "--resume", "run"}, {"holds a run of copy, not of lookup"});
  expect_refused({"train", "--resume", "run", "--set", "model.width=32"}, {"only train.*"});
  expect_refused({"train", "--resume", "run", "--steps", "2"}, {"train.steps is 2", "3 already"});
  expect_refused({"train", "--resume", "run", "--double"}, {"float precision", "resume without --double"});
  EXPECT_EQ(read_file(folder.file("run/last.ckpt")), before);
  EXPECT_EQ(read_file(folder.file("run/config.toml")), toml);
}

TEST_F(RefusalTest, OfPrompts_F53_F57) {
  make_run("run");
  expect_refused({"generate", "run", "--prompt", "a z b"}, {"'z'"});
  expect_refused({"generate", "run", "--prompt", "a \u00e9 b"}, {"'\\u{e9}'"});
  expect_refused({"generate", "run", "--prompt", "a \u202e b"}, {"'\\u{202e}'"});
  expect_refused({"generate", "run", "--prompt", "a \x1b[2J b"}, {"'\\x1b[2J'"});
  expect_refused({"generate", "run", "--prompt", "a b c | a b c"}, {"holds the whole answer of copy"});
  expect_refused({"generate", "run", "--prompt", "a b c | a | b"}, {"stands twice"});
  expect_refused({"generate", "run", "--prompt", "a a a a a a a a"}, {"8 symbols, expected 3"});
  expect_refused({"generate", "run", "--prompt", "a b c", "--temperature", "-1"}, {"temperature is -1"});  // F59
  expect_refused({"generate", "run", "--prompt", "a b c", "--top-p", "0"}, {"top-p is 0"});
  expect_refused({"generate", "run", "--prompt", "a b c", "--top-k", "-1"}, {"--top-k", "-1"});
  expect_refused({"generate", "run", "--prompt", "a b c", "--stop", "z"}, {"'z'"});
  expect_refused({"generate", "run", "--prompt", "a", "--tokens", "0"}, {"--tokens"});
  expect_refused({"inspect", "run", "--input", "a b"}, {"2 symbols, expected 3"});
  expect_refused({"inspect", "run", "--input", "a b zz"}, {"'zz'"});
}

TEST_F(RefusalTest, OfHeadsAndNumbersThatDoNotExist) {
  make_run("run");
  expect_refused({"inspect", "run", "--layer", "1"}, {"layer 1", "heads are"});
  expect_refused({"inspect", "run", "--head", "2"}, {"head 2"});
  expect_refused({"inspect", "run", "--kind", "cross"}, {"cross"});
  expect_refused({"inspect", "run", "--kind", "sideways"}, {"--kind"});
  expect_refused({"eval", "run", "--sequences", "0"}, {"--sequences"});
  expect_refused({"explain", "--temperature", "0"}, {"temperature"});
  expect_refused({"explain", "--q", "1,x"}, {"x"});
}

TEST_F(RefusalTest, OfPlacesForFilesBeforeAnythingIsComputed) {
  make_run("run");
  for (const char* option : {"--html", "--svg", "--png", "--npz", "--safetensors", "--csv"}) {
    expect_refused({"inspect", "run", option, "nowhere/file"}, {"cannot write nowhere/file"});
    expect_refused({"inspect", "run", option, "run"}, {"cannot write run"});
    expect_refused({"inspect", "run", option, ""}, {option, "empty"});
  }
  expect_refused({"inspect", "run", "--csv", "well.csv", "--npz", "nowhere/file"}, {"nowhere/file"});
}

TEST_F(RefusalTest, OfAnEmptySequence) {
  make_run("run");
  expect_refused({"inspect", "run", "--input", ""}, {"--input", "empty"});
  expect_refused({"inspect", "run", "--input", " "}, {"0 symbols"});
  expect_refused({"inspect", "run", "--patch", ""}, {"--patch", "empty"});
}

TEST_F(RefusalTest, OfFilesOfSettings) {
  expect_refused({"train", "--config", "missing.toml"}, {"missing.toml"});
  test::write_plainly(folder.file("bad.toml"), "task = \"copy\"\n[model]\nwidht = 32\nheads = \"two\"\n");
  const std::string error = refused({"train", "--config", "bad.toml"}, 2);
  EXPECT_TRUE(contains(error, "width") && contains(error, "heads")) << error;
}

}  // namespace
}  // namespace tapehead
