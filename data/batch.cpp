#include "data/batch.h"

#include <algorithm>

#include "autograd/error.h"

namespace tapehead {

namespace {

void require_suits(const Task& task, Layout layout) {
  if (task.continues() && layout != Layout::joined)
    throw ConfigError(error_line("batch", "only a decoder learns " + task.name(), "", "set model.kind to decoder"));
  if (layout == Layout::aligned && !task.aligned())
    throw ConfigError(error_line("batch",
                                 "an encoder alone cannot learn " + task.name() +
                                     ": the source does not decide a target token for each of its own",
                                 "", "set model.kind to decoder or encoder-decoder"));
}

void require_equal_lengths(const std::vector<Example>& examples) {
  for (const Example& example : examples)
    if (example.source.size() != examples[0].source.size() || example.target.size() != examples[0].target.size() ||
        example.link.size() != example.target.size())
      throw ShapeError(error_line("batch", "examples differ in length"));
}

}  // namespace

void lay_out(const Task& task, const std::vector<Example>& examples, Layout layout, Batch& batch) {
  require_suits(task, layout);
  if (task.continues()) layout = Layout::aligned;
  require_equal_lengths(examples);
  const std::size_t B = examples.size();
  const std::size_t S = B ? examples[0].source.size() : 0, M = B ? examples[0].target.size() : 0;
  const std::size_t first = layout == Layout::joined ? S : 0;  // the row that predicts target 0
  const std::size_t T = first + M;
  batch.sequences = static_cast<std::int64_t>(B);
  batch.source_length = layout == Layout::split ? static_cast<std::int64_t>(S) : 0;
  batch.target_length = static_cast<std::int64_t>(T);
  batch.source.clear();
  batch.inputs.clear();
  batch.targets.assign(B * T, Batch::kIgnore);
  batch.links.assign(B * T, -1);
  batch.counted = 0;
  for (std::size_t b = 0; b < B; ++b) {
    const Example& example = examples[b];
    std::vector<std::int32_t>& source = layout == Layout::split ? batch.source : batch.inputs;
    source.insert(source.end(), example.source.begin(), example.source.end());
    if (layout != Layout::aligned && M > 0) {
      batch.inputs.push_back(task.separator());
      batch.inputs.insert(batch.inputs.end(), example.target.begin(), example.target.end() - 1);
    }
    for (std::size_t m = 0; m < M; ++m) {
      if (example.link[m] < 0) continue;
      const std::size_t row = b * T + first + m;
      batch.targets[row] = example.target[m];
      batch.links[row] = example.link[m];
      ++batch.counted;
    }
  }
}

std::int64_t longest_sequence(const Task& task, Layout layout) {
  if (task.continues()) return task.source_length();
  switch (layout) {
    case Layout::joined:
      return task.source_length() + task.target_length();
    case Layout::aligned:
      return task.source_length();
    case Layout::split:
      break;
  }
  return std::max(task.source_length(), task.target_length());
}

BatchSource::BatchSource(const Task& task, Layout layout, std::int64_t sequences, std::uint64_t seed)
    : task_(task), layout_(layout), seed_(seed), examples_(static_cast<std::size_t>(sequences)) {
  require_suits(task, layout);
}

const Batch& BatchSource::training(std::uint32_t step) {
  for (std::size_t i = 0; i < examples_.size(); ++i) {
    rng::Generator random(rng::Stream(seed_, rng::Purpose::training_data, step, static_cast<std::uint32_t>(i)));
    task_.draw_side(false, random, examples_[i]);
  }
  lay_out(task_, examples_, layout_, batch_);
  return batch_;
}

Batch BatchSource::held_out(std::int64_t count, std::uint64_t seed) const {
  std::vector<Example> examples(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < examples.size(); ++i) {
    rng::Generator random(rng::Stream(seed, rng::Purpose::evaluation_data, 0, static_cast<std::uint32_t>(i)));
    task_.draw_side(true, random, examples[i]);
  }
  Batch batch;
  lay_out(task_, examples, layout_, batch);
  return batch;
}

}  // namespace tapehead
