// One run's settings: the [model], [train] and [data] tables of a TOML file, and --set key=value on top of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/task.h"
#include "nn/config.h"

namespace tapehead {

struct TrainConfig {
  std::int64_t steps = 1000;
  std::int64_t batch = 64;
  double learning_rate = 2e-3;
  double min_learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;
  double weight_decay = 0.01;
  std::int64_t warmup = 20;  // steps
  double clip = 1;           // largest global gradient norm; 0: off
  double label_smoothing = 0;
  std::int64_t eval_every = 25;
  double target = 1;  // stop once exact match on held-out data reaches this; above 1: never
  bool operator==(const TrainConfig&) const = default;
};

struct Config {
  std::string task;
  std::uint64_t seed = 1;
  ModelConfig model;
  TrainConfig train;
  std::vector<TaskKnob> data;

  /// The task's defaults. Throws ConfigError for an unknown task, with a suggestion.
  static Config defaults(const std::string& task);
  /// "model.heads=2". Throws ConfigError for an unknown key (with a suggestion), a value of the wrong type or range.
  void set(const std::string& assignment);
  /// Reads a TOML file over the present values; collects every problem, one line each.
  void read_toml(const std::string& path);
  std::string to_toml() const;
  /// Throws ConfigError listing every contradiction, one line each ("width 64 is not divisible by 5 heads").
  void check() const;
};

}  // namespace tapehead
