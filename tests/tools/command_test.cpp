// Every verb of the command, once, on a small model: what it prints, and what it prints as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/errors.h"
#include "tests/tools/process.h"
#include "tools/inspect/text.h"

namespace tapehead {
namespace {

using nlohmann::json;
using test::contains;
using test::Finished;
using test::lines_of;
using test::Words;

Words keys(const json& object) {
  Words list;
  for (const auto& item : object.items()) list.push_back(item.key());
  return list;  // json sorts them
}

class VerbTest : public test::CommandTest {
 protected:
  void SetUp() override { make_run("run", {"--quiet"}); }
  std::string said(const Words& words) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.err, "");
    return finished.out;
  }
  json answered(Words words) {
    words.push_back("--json");
    const std::string out = said(words);
    EXPECT_EQ(lines_of(out), 2) << out;  // one, and the end of it
    return json::parse(out);
  }
};

TEST_F(VerbTest, TrainMakesARunFolder) {
  EXPECT_EQ(folder.listing(), "run");
  for (const char* file : {"config.toml", "metrics.jsonl", "last.ckpt", "best.ckpt", "snapshots.bin"})
    EXPECT_TRUE(std::filesystem::exists(folder.file(std::string("run/") + file))) << file;
}

TEST_F(VerbTest, TrainAnswersWithTheFixedKeys) {
  const Finished finished = run(tiny("json", {"--json", "--seed", "5", "--quiet"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.err, "");
  const json answer = json::parse(finished.out.substr(finished.out.rfind("\n{") + 1));
  EXPECT_EQ(keys(answer),
            (Words{"exact_match", "loss", "parameters", "run", "seconds", "seed", "steps", "task", "token_accuracy"}));
  EXPECT_EQ(answer["task"], "copy");
  EXPECT_EQ(answer["seed"], 5);
  EXPECT_EQ(answer["steps"], 6);
  EXPECT_EQ(answer["run"], "json");
  EXPECT_TRUE(answer["loss"].is_number() && answer["exact_match"].is_number() && answer["seconds"].is_number());
}

TEST_F(VerbTest, TrainTellsAPersonWhereTheRunIs) {
  const Finished finished = run(tiny("told"));
  EXPECT_TRUE(contains(finished.out, "run folder: told")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "tapehead inspect told"));
  EXPECT_TRUE(contains(finished.err, "step 6/6")) << finished.err;
  EXPECT_EQ(finished.err.find('\r'), std::string::npos) << "stderr is no terminal: plain lines";
}

TEST_F(VerbTest, TrainSaysNothingWhenQuiet) {
  const Finished finished = run(tiny("quiet", {"--quiet"}));
  EXPECT_EQ(finished.out + finished.err, "");
}

TEST_F(VerbTest, TrainWithoutOutTakesTheNextFreeFolder) {
  Words words = tiny("");
  words.erase(words.begin() + 2, words.begin() + 4);
  EXPECT_TRUE(contains(run(words).out, "run folder: runs/copy-001\n"));
  EXPECT_TRUE(contains(run(words).out, "run folder: runs/copy-002\n"));
}

TEST_F(VerbTest, TrainReadsItsOwnConfigBack) {
  EXPECT_EQ(run({"train", "--config", "run/config.toml", "--out", "again", "--threads", "1"}).code, 0);
  EXPECT_EQ(read_file(folder.file("again/last.ckpt")), read_file(folder.file("run/last.ckpt")));
}

TEST_F(VerbTest, TrainInPartsAndWithMoreThreadsGivesTheSameBytes_F29) {
  make_run("parts", {"--stop-at", "4", "--threads", "3"});
  EXPECT_EQ(run({"train", "--resume", "parts", "--threads", "2"}).code, 0);
  EXPECT_EQ(read_file(folder.file("parts/last.ckpt")), read_file(folder.file("run/last.ckpt")));
}

TEST_F(VerbTest, TrainInDoubleMakesAFileThatFloatReads) {
  make_run("wide", {"--double"});
  EXPECT_EQ(answered({"info", "wide"})["precision"], "double");
  EXPECT_EQ(answered({"eval", "wide", "--double"})["task"], "copy");
}

TEST_F(VerbTest, EvalMeasuresUnseenSequences) {
  EXPECT_TRUE(contains(said({"eval", "run", "--sequences", "50", "--threads", "1"}), "50 unseen sequences, seed 2"));
  const json answer = answered({"eval", "run/last.ckpt", "--sequences", "50", "--seed", "9"});
  EXPECT_EQ(keys(answer), (Words{"exact_match", "loss", "seed", "sequences", "task", "token_accuracy"}));
  EXPECT_EQ(answer["seed"], 9);
  EXPECT_EQ(answered({"eval", "run", "--threads", "1"}), answered({"eval", "run", "--threads", "3"}));
}

TEST_F(VerbTest, GenerateContinuesThePrompt) {
  const std::string text = said({"generate", "run", "--prompt", "a b c"});
  EXPECT_EQ(lines_of(text), 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 2) << text;  // three tokens
  const json answer = answered({"generate", "run", "--prompt", "a b c | a", "--tokens", "1"});
  EXPECT_EQ(keys(answer), (Words{"forgotten", "prompt", "text"}));
  EXPECT_FALSE(contains(answer["text"], " "));
  const std::string token = answer["text"];
  const json stopped = answered({"generate", "run", "--prompt", "a b c | a", "--tokens", "5", "--stop", token});
  EXPECT_EQ(stopped["text"], token);
}

TEST_F(VerbTest, GenerateSlidesBeyondTheContextAndSaysSo_F57) {
  const Words long_one = {"generate", "run", "--prompt", "a b c", "--tokens", "20"};
  EXPECT_TRUE(contains(said(long_one), "the context holds 6 tokens: at the end the first 17 were out of sight"));
  EXPECT_EQ(answered(long_one)["forgotten"], 17);
}

TEST_F(VerbTest, GenerateDrawsBySeedAndShowsAttention) {
  const Words drawn = {"generate", "run", "--prompt", "a b c", "--temperature", "5", "--tokens", "12", "--seed"};
  const auto with_seed = [&](const char* seed) {
    Words words = drawn;
    words.push_back(seed);
    return said(words);
  };
  EXPECT_EQ(with_seed("1"), with_seed("1"));
  EXPECT_NE(with_seed("1"), with_seed("2"));
  const std::string shown = said({"generate", "run", "--prompt", "a b c", "--show-attention"});
  EXPECT_TRUE(contains(shown, "head 0") || contains(shown, "H0")) << shown;
  EXPECT_FALSE(contains(shown, "pattern match")) << "nobody knows which source is right: " << shown;
  // The command that remakes it is written on the figure; it may be broken over lines.
  std::string all = said({"generate", "run", "--prompt", "a b c", "--tokens", "2", "--temperature", "0.5", "--top-k",
                          "3", "--top-p", "0.9", "--seed", "4", "--stop", "e", "--show-attention"});
  all = std::regex_replace(all, std::regex("\\s*\\\\?\\s+"), " ");
  EXPECT_TRUE(contains(all, "--tokens 2 --temperature 0.5 --top-k 3 --top-p 0.9 --stop e --seed 4 --show-attention"))
      << all;
}

TEST_F(VerbTest, InspectDrawsEightyColumnsAndListsTheHeads) {
  std::istringstream lines(said({"inspect", "run"}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(text::width(line), 80) << line;
  EXPECT_GT(count, 10);
  const json answer = answered({"inspect", "run"});
  ASSERT_EQ(answer.at("heads").size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const json& head = answer["heads"][i];
    EXPECT_EQ(keys(head), (Words{"head", "kind", "layer", "pattern_match"}));
    EXPECT_EQ(head["kind"], "decoder");
    EXPECT_EQ(head["head"], i);
    EXPECT_GT(head["pattern_match"], 0);
    EXPECT_LT(head["pattern_match"], 1);
  }
  EXPECT_TRUE(contains(said({"inspect", "run", "--input", "a b c", "--layer", "0", "--head", "1"}), "head 1"));
  EXPECT_TRUE(contains(said({"inspect", "run", "--show", "head"}), "of its weight where the rule looks"));
}

TEST_F(VerbTest, InfoTellsWhatAFileHolds) {
  const std::string text = said({"info", "run/last.ckpt", "--config"});
  for (const char* part : {"copy, decoder of 1 layer x 2 heads", "blocks.0.attn.q.weight", "width = 16"})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  EXPECT_EQ(answered({"info", "run/last.ckpt"})["training_state"], true);
  EXPECT_EQ(answered({"info", "run"})["training_state"], false);
}

TEST_F(VerbTest, TasksAreListedAndShown) {
  const std::string text = said({"tasks"});
  EXPECT_TRUE(contains(text, "copy") && contains(text, "lookup"));
  EXPECT_TRUE(contains(said({"tasks", "lookup"}), "is read from source"));
  EXPECT_EQ(answered({"tasks"}).at("tasks").size(), 2u);
}

TEST_F(VerbTest, ExplainWorksOutTheLesson) {
  const std::string text = said({"explain"});
  for (const char* number : {"0.7071", "1.2033", "0.7967"}) EXPECT_TRUE(contains(text, number)) << number;
  EXPECT_TRUE(answered({"explain"}).is_object());
}

TEST_F(VerbTest, GradcheckChecksAWholeModel) {
  for (const char* variant : {"model.rank=4", "model.scoring=cosine", "model.scoring=additive"})
    answered({"gradcheck", "copy", "--set", "model.width=8", "--set", "data.length=2", "--set", variant});
  const json answer = answered({"gradcheck", "copy", "--set", "model.width=8", "--set", "data.length=2"});
  EXPECT_EQ(answer.at("passed"), true);
  EXPECT_EQ(answer.at("checks").size(), 1u);
  // Kinks: differences that do not settle say nothing of the gradient.
  const Finished kinks = run({"gradcheck", "copy", "--set", "model.activation=relu"});
  EXPECT_EQ(kinks.code, 1);
  EXPECT_TRUE(contains(kinks.out, "undecided") && !contains(kinks.out, "FAILED")) << kinks.out;
  EXPECT_TRUE(contains(kinks.err, "do not settle")) << kinks.err;
}

TEST_F(VerbTest, OutputThatCannotBeWrittenIsAnError) {
  for (const char* words : {"--help", "train --help", "--version", "explain"}) {
    const std::string call = std::string(TAPEHEAD_COMMAND) + ' ' + words + " > /dev/full";
    const Finished full = test::Process("/bin/sh", {"-c", call}, folder.path()).wait();
    EXPECT_EQ(full.code, 1) << call;
    EXPECT_TRUE(contains(full.err, "cannot write to the standard output: No space left")) << full.err;
  }
}

TEST_F(VerbTest, HelpAndVersionAreNoErrors) {
  EXPECT_TRUE(contains(said({"--help"}), "inspect"));
  EXPECT_TRUE(contains(said({"train", "--help"}), "--resume"));
  EXPECT_TRUE(contains(said({"--version"}), "tapehead "));
}

TEST_F(VerbTest, TrainWritesAReportUnlessToldNotTo) {
  EXPECT_TRUE(contains(read_file(folder.file("run/report.html")), "<!doctype html>"));
  make_run("bare", {"--no-report", "--snapshots", "0"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("bare/report.html")));
  const auto report = answered({"eval", "bare/last.ckpt"});
  EXPECT_EQ(report, answered({"eval", "run/last.ckpt"}));
}

TEST_F(VerbTest, TrainStopsWhenARuleHoldsAndLogsHeads) {
  make_run("ruled", {"--stop-when", "sharpness>-1", "--log-heads"});
  EXPECT_EQ(answered({"info", "ruled/last.ckpt"})["step"], 3);  // the first evaluation
  const std::string log = read_file(folder.file("ruled/metrics.jsonl"));
  EXPECT_TRUE(contains(log, "\"layer\": 0, \"head\": 1, \"pattern_match\": ")) << log;
}

TEST_F(VerbTest, InspectWritesFilesThatAreTheSameEachTime) {
  const auto write = [&](const std::string& name) {
    said({"inspect", "run", "--html", name + ".html", "--csv", name + ".csv", "--npz", name + ".npz", "--svg",
          name + ".svg", "--png", name + ".png", "--safetensors", name + ".safetensors"});
  };
  write("a");
  write("b");
  for (const char* type : {"html", "csv", "npz", "svg", "png", "safetensors"})
    EXPECT_EQ(read_file(folder.file(std::string("a.") + type)), read_file(folder.file(std::string("b.") + type)))
        << type;
}

TEST_F(VerbTest, InspectShowsTheEndWhenThePastIsDamaged) {
  make_run("hurt");
  std::string bytes = read_file(folder.file("hurt/snapshots.bin"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  test::write_plainly(folder.file("hurt/snapshots.bin"), bytes);
  for (const Words& words : {Words{"inspect", "hurt"}, Words{"inspect", "hurt", "--html", "hurt.html"}}) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0);
    EXPECT_TRUE(contains(finished.err, "hurt/snapshots.bin is damaged: its checksum does not match. Hint:"));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_TRUE(contains(finished.out, words.size() == 2 ? "L0H1" : "hurt.html: a page")) << finished.out;
  }
  EXPECT_EQ(run({"inspect", "hurt", "--csv", "hurt.csv"}).err, "");  // needs none of it
}

TEST_F(VerbTest, AReportTellsNothingOfWhereItIs) {
  said({"inspect", folder.file("run"), "--html", "a.html", "--svg", "a.svg"});
  for (const char* file : {"run/report.html", "a.html", "a.svg"})
    EXPECT_FALSE(contains(read_file(folder.file(file)), folder.path())) << file;
}

TEST_F(VerbTest, InspectDrawsAttentionFromElsewhere) {
  said({"inspect", "run", "--npz", "maps.npz"});
  EXPECT_TRUE(contains(said({"inspect", "maps.npz"}), "L0H1"));
  EXPECT_EQ(answered({"inspect", "maps.npz"})["heads"], 2);
}

TEST_F(VerbTest, InspectTakesHeadsAway) {
  const json both = answered({"inspect", "run", "--ablate", "L0H0", "--ablate", "L0H1=mean"});
  EXPECT_EQ(keys(both), (Words{"after", "before", "changed"}));
  EXPECT_NE(both["before"]["loss"], both["after"]["loss"]);
  EXPECT_TRUE(contains(said({"inspect", "run", "--knock-out", "0,1,4,2"}), "without cell 4, 2"));
  const json patched = answered({"inspect", "run", "--input", "a b c", "--patch", "c a b"});
  EXPECT_EQ(patched["heads"].size(), 2u);
  EXPECT_TRUE(contains(said({"inspect", "run", "--lens"}), "blocks.0"));
  const json parts = answered({"inspect", "run", "--attribute", "4"});
  double sum = 0, lead = 0;
  for (const json& part : parts["parts"]) sum += part["value"].get<double>(), lead += part["lead"].get<double>();
  EXPECT_NEAR(sum, parts["logit"].get<double>(), 1e-4);
  EXPECT_NEAR(lead, parts["lead"].get<double>(), 1e-4);
  EXPECT_EQ(answered({"inspect", "run", "--circuits"})["heads"].size(), 2u);
}

TEST_F(VerbTest, InspectRefusesInterventionsThatMakeNoSense) {
  const std::vector<Words> wrong = {{"--ablate", "L5H0"},       {"--ablate", "x"},      {"--ablate", "L0H0=half"},
                                    {"--knock-out", "0,0,1"},   {"--attribute", "0"},   {"--patch", "a b"},
                                    {"--knock-out", "0,0,a,1"}, {"--tokens", "nothing"}};
  for (Words words : wrong) {
    words.insert(words.begin(), {"inspect", "run"});
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << words[2] << ' ' << words[3] << finished.err;
    EXPECT_EQ(finished.out, "");
  }
}

TEST_F(VerbTest, InspectWatchEndsWhenNobodyTrains) {
  EXPECT_TRUE(contains(said({"inspect", "run", "--watch"}), "step 6, loss"));
}

TEST_F(VerbTest, CompareShowsSettingsResultsAndHeads) {
  make_run("other", {"--seed", "3"});
  const json answer = answered({"compare", "run", "other"});
  EXPECT_EQ(keys(answer), (Words{"a", "b", "heads", "settings"}));
  EXPECT_EQ(answer["settings"], json({"seed: 1 -> 3"}));
  EXPECT_EQ(answer["heads"].size(), 2u);
  EXPECT_GT(answer["heads"][0]["largest_difference"], 0);
  EXPECT_TRUE(contains(said({"compare", "run", "run"}), "none\n"));
  EXPECT_TRUE(contains(said({"compare", "run", "run"}), "does not tell why"));
}

// The rule of copy speaks of cross-attention, not of the decoder's own.
TEST_F(VerbTest, CompareHasNoNumberWhereTheRuleDoesNotApply) {
  make_run("both", {"--set", "model.kind=encoder-decoder"});
  const json heads = answered({"compare", "both", "both"})["heads"];
  EXPECT_TRUE(heads[0]["pattern_match_a"].is_null() && !heads[2]["pattern_match_a"].is_null()) << heads;
  const std::string text = said({"compare", "both", "both"});
  EXPECT_TRUE(contains(text, "decoder L0H0              -         -         -   mean 0.0000")) << text;
  EXPECT_FALSE(contains(text, "nan")) << text;
}

TEST_F(VerbTest, HelpFitsATerminalOf80Columns) {
  std::istringstream overview(said({"--help"}));
  std::vector<Words> pages = {{"--help"}};
  bool verbs = false;
  for (std::string line, verb; std::getline(overview, line);) {
    verbs |= line.starts_with("Subcommands") || line.starts_with("SUBCOMMANDS");
    if (verbs && std::istringstream(line) >> verb && line.starts_with("  ")) pages.push_back({verb, "--help"});
  }
  EXPECT_GE(pages.size(), 9u) << "no list of verbs found";
  for (const Words& page : pages) {
    std::istringstream lines(said(page));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << page[0] << ": " << line;
  }
}

}  // namespace
}  // namespace tapehead
