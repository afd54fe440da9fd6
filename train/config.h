// One run's settings: the [model], [train] and [data] tables of a TOML file, and --set key=value on top of it.
//
// One table in config.cpp drives all of it: names, defaults, ranges, TOML, and docs/config.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "nn/config.h"

namespace tapehead {

enum class OptimizerKind { adamw };
enum class ScheduleKind { cosine, constant };  // of the learning rate, after the warmup

struct TrainConfig {
  std::int64_t steps = 1000;
  std::int64_t batch = 64;
  OptimizerKind optimizer = OptimizerKind::adamw;
  ScheduleKind schedule = ScheduleKind::cosine;
  double learning_rate = 2e-3;
  double min_learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;
  double weight_decay = 0.01;
  std::int64_t warmup = 20;  // steps
  double clip = 1;           // largest global gradient norm; 0: off
  double label_smoothing = 0;
  std::vector<std::string> freeze;  // names of parameters, or beginnings of names up to a dot
  std::int64_t snapshots = 200;     // moments at which attention is kept, at most
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
  bool operator==(const Config&) const = default;

  /// The task's defaults. Throws ConfigError for an unknown task, with a suggestion.
  static Config defaults(const std::string& task);
  /// "model.heads=2". Throws ConfigError for an unknown key (with a suggestion), a value of the wrong type or range.
  void set(const std::string& assignment);
  /// Reads a TOML file over the present values. A config without a task takes the file's task and its defaults, or
  /// throws. Throws ConfigError with every problem, one line each, and then changes nothing; FileError when there is no
  /// such file.
  void read_toml(const std::string& path);
  /// The same for TOML already in memory; `name` stands in messages.
  void parse_toml(const std::string& text, const std::string& name);
  /// Every setting but the vocabulary's size, which follows from the task; read_toml gives back the same config.
  std::string to_toml() const;
  /// Throws ConfigError listing every value out of range and every contradiction, one line each.
  void check() const;
  /// The model with its vocabulary, and its context where that was left to the task.
  ModelConfig model_for(const Task& of) const;
};

Layout layout_of(ModelKind kind);
/// "decoder", "encoder" or "encoder-decoder", as in a config.
const std::string& name_of(ModelKind kind);

/// The page docs/config.md: every key with type, default, range and meaning.
std::string config_reference();

}  // namespace tapehead
