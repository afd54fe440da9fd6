// The verb bench: what it answers, and that a dump holds the weights and batches of the step that was measured.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "tests/errors.h"
#include "tests/tools/process.h"
#include "tools/workload.h"
#include "train/learner.h"

namespace tapehead {
namespace {

using nlohmann::json;
using test::Finished;
using test::Words;

class BenchTest : public test::CommandTest {
 protected:
  json answered(const Words& words) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out.substr(finished.out.rfind("\n{") + 1));
  }
};

// A safetensors file, read with nothing but the format's description: its header, what it says of the workload, and the
// numbers of one entry.
json header_of(const std::string& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  return json::parse(file.substr(sizeof size, size));
}

json facts(const std::string& file) {
  return json::parse(header_of(file).at("__metadata__").at("workload").get<std::string>());
}

template <class T>
std::vector<T> entry(const std::string& file, const std::string& name) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const json header = header_of(file);
  const auto offsets = header.at(name).at("data_offsets").get<std::array<std::size_t, 2>>();
  const auto shape = header.at(name).at("shape").get<std::vector<std::int64_t>>();
  std::vector<T> numbers((offsets[1] - offsets[0]) / sizeof(T));
  EXPECT_EQ(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()),
            static_cast<std::int64_t>(numbers.size()));
  std::memcpy(numbers.data(), file.data() + sizeof size + size + offsets[0], offsets[1] - offsets[0]);
  return numbers;
}

// The dumped weights in place of the model's own.
void read_parameters(const std::string& file, Model& model) {
  for (const NamedParameter& p : unique_parameters(model.net)) {
    const std::vector<float> stored = entry<float>(file, "param/" + p.name);
    const std::span<Real> to = model.parameters.value(p.parameter);
    ASSERT_EQ(stored.size(), to.size()) << p.name;
    std::copy(stored.begin(), stored.end(), to.begin());
  }
}

TEST_F(BenchTest, AnswersWithTheKeysThatPairsCompare) {
  const json answer = answered({"bench", "W0", "--threads", "1", "--steps", "3", "--json"});
  for (const char* key : {"ms_step", "ms_min", "tokens_per_second", "gflops", "fma_peak_share", "peak_rss_mib", "loss"})
    EXPECT_TRUE(answer.at(key).is_number() && answer.at(key) > 0) << key << " is " << answer.at(key);
  EXPECT_EQ(answer.at("steps"), 3);
  EXPECT_LE(answer.at("ms_min"), answer.at("ms_step"));
  EXPECT_LT(answer.at("fma_peak_share"), 1);
  EXPECT_NEAR(answer.at("first_loss"), std::log(16), 0.02);  // small first weights guess evenly
}

TEST_F(BenchTest, LeavesOutThePeakOnDemand) {
  const json answer = answered({"bench", "W0", "--threads", "1", "--steps", "2", "--no-peak", "--json"});
  for (const char* key : {"fma_peak_gflops", "fma_peak_share", "gemm_gflops"}) EXPECT_TRUE(answer.at(key).is_null());
  EXPECT_GT(answer.at("gflops"), 0);
  const Finished said = run({"bench", "W0", "--threads", "1", "--steps", "2", "--no-peak"});
  EXPECT_FALSE(test::contains(said.out, "%")) << said.out;
}

TEST_F(BenchTest, SameLossAtAnyNumberOfThreadsAndLowerLater) {
  const json one = answered({"bench", "W6", "--threads", "1", "--steps", "20", "--batch", "8", "--json"});
  const json two = answered({"bench", "W6", "--threads", "2", "--steps", "20", "--batch", "8", "--json"});
  EXPECT_EQ(one.at("loss"), two.at("loss"));
  EXPECT_LT(one.at("loss"), one.at("first_loss"));
}

TEST_F(BenchTest, MeasuresAttentionOfAnyLengthAlone) {
  const json answer = answered({"bench", "W4", "--seq", "96", "--threads", "1", "--steps", "2", "--json"});
  EXPECT_EQ(answer.at("seq"), 96);
  EXPECT_EQ(answer.at("loss"), answer.at("first_loss"));
  // 6 products, 2 * 64 operations a score, (96 * 97) / 2 visible scores in each of 8 heads
  const double operations = 6.0 * 2 * 64 * (96 * 97 / 2) * 8;
  EXPECT_NEAR(answer.at("gflops").get<double>() * answer.at("ms_step").get<double>() * 1e6, operations,
              1e-6 * operations);
}

TEST_F(BenchTest, DumpHoldsTheWeightsAndTheBatchOfTheFirstStep) {
  const json answer = answered({"bench", "W0", "--threads", "1", "--steps", "1", "--json", "--dump", "w0.safetensors"});
  const std::string file = read_file(folder.file("w0.safetensors"));
  const Workload w = find_workload("W0");
  ModelConfig config = w.model;
  config.context = w.length;
  Model model(config, 99);  // other weights, all of them replaced
  read_parameters(file, model);
  Batch batch;
  batch.sequences = w.batch;
  batch.target_length = w.length;
  batch.inputs = entry<std::int32_t>(file, "batch/0/inputs");
  batch.targets = entry<std::int32_t>(file, "batch/0/targets");
  batch.counted = w.batch * w.length;
  EXPECT_EQ(Learner(model, workload_training(), 1, 1).step(batch).loss, answer.at("first_loss"));
}

TEST_F(BenchTest, TakesAnotherWidthAndVocabularyAndKeepsTheWidthOfAHead) {
  const json answer = answered({"bench", "W1", "--width", "96", "--vocabulary", "40", "--threads", "1", "--steps", "1",
                                "--batch", "2", "--json", "--dump", "w1.safetensors"});
  EXPECT_EQ(facts(read_file(folder.file("w1.safetensors"))).at("heads"), 6);
  ModelConfig config = find_workload("W1").model;
  config.width = 96;
  config.vocabulary = 40;
  config.context = 32;
  EXPECT_EQ(answer.at("parameters"), parameter_count(Model(config, 1).net));
  EXPECT_NEAR(answer.at("first_loss"), std::log(40), 0.05);
  const Finished uneven = run({"bench", "W1", "--width", "40"});
  EXPECT_EQ(uneven.code, 2);
  EXPECT_EQ(uneven.err, "[bench] width 40 is no multiple of 16, the width of a head of W1.\n");
}

TEST_F(BenchTest, DecodesTheMostLikelyTokensAfterTheDumpedPrompt) {
  const json answer = answered({"bench", "W2", "--decode", "--seq", "24", "--threads", "1", "--steps", "1", "--json",
                                "--dump", "w2.safetensors"});
  EXPECT_GT(answer.at("tokens_per_second"), 0);
  const std::string file = read_file(folder.file("w2.safetensors"));
  ModelConfig config = find_workload("W2").model;
  config.context = 24;
  Model model(config, 99);
  read_parameters(file, model);
  std::vector<std::int32_t> all = entry<std::int32_t>(file, "prompt");
  ASSERT_EQ(all.size(), 8u);
  Tape tape(model.parameters);
  while (all.size() < 24) {  // everything anew for each token
    tape.reset();
    NoGrad no_grad(tape);
    const Tensor logits = model.net(tape.ids({1, static_cast<Index>(all.size())}, all));
    const Real* last = logits.value() + (all.size() - 1) * 65;
    all.push_back(static_cast<std::int32_t>(std::max_element(last, last + 65) - last));
  }
  const std::vector<std::int32_t> said(all.begin() + 8, all.end());
  EXPECT_EQ(answer.at("tokens").get<std::vector<std::int32_t>>(), said);
  EXPECT_GT(std::set<std::int32_t>(said.begin(), said.end()).size(), 4u);  // one token again and again shows little
}

TEST_F(BenchTest, RefusesToDecodeWhatSaysNothing) {
  for (const char* name : {"W4", "W6"}) {
    const Finished finished = run({"bench", name, "--decode"});
    EXPECT_EQ(finished.code, 2) << name;
    EXPECT_TRUE(test::contains(finished.err, "is no decoder")) << finished.err;
  }
  const Finished brief = run({"bench", "W2", "--decode", "--seq", "8"});
  EXPECT_EQ(brief.code, 2);
  EXPECT_TRUE(test::contains(brief.err, "the prompt alone has 8 tokens")) << brief.err;
}

TEST_F(BenchTest, RefusesAnUnknownWorkloadAndAFolderThatDoesNotExist) {
  const Finished unknown = run({"bench", "W9"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "[bench] unknown workload 'W9'. Hint: they are W0 to W6.\n");
  const Finished nowhere = run({"bench", "W0", "--steps", "1", "--dump", "no/such/folder/file"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_TRUE(test::contains(nowhere.err, "no/such/folder/file")) << nowhere.err;
}

}  // namespace
}  // namespace tapehead
