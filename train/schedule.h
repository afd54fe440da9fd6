// The learning rate over training: linear warmup, then half a cosine (Loshchilov and Hutter, "SGDR", 2017, eq. 5) or
// the same rate to the end.
#pragma once

#include "train/config.h"

namespace tapehead {

/// The rate of step s = 1 .. steps, with W steps of warmup out of N:
///   s <= W: lr s / (W + 1), else: min + (lr - min) (1 + cos(pi (s - 1 - W) / (N - W))) / 2, or lr when constant.
/// Always in (0, lr], whatever W and N; throws ConfigError for s outside 1 .. N.
double learning_rate(const TrainConfig& config, std::int64_t step);

}  // namespace tapehead
