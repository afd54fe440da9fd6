// What the files of the built-in tasks share; of interest to no one else.
#pragma once

#include <array>
#include <span>

#include "data/task.h"

namespace tapehead {

std::unique_ptr<Task> make_copy(const std::vector<TaskKnob>& settings);
std::unique_ptr<Task> make_lookup(const std::vector<TaskKnob>& settings);

/// `knobs` with the values of `settings`; throws ConfigError, one line a knob that is unknown or out of range.
std::vector<TaskKnob> with_settings(const std::string& task, std::vector<TaskKnob> knobs,
                                    const std::vector<TaskKnob>& settings);

/// Names of `count` symbols: a to z, then s26, s27 and on.
std::vector<std::string> symbol_names(std::int64_t count);

/// Fills `drawn` with different numbers out of 0 .. n - 1, each selection and order as likely as any (the first steps
/// of a Fisher-Yates shuffle). `scratch` holds at least n.
void draw_distinct(rng::Generator& random, std::int32_t n, std::span<std::int32_t> scratch,
                   std::span<std::int32_t> drawn);

}  // namespace tapehead
