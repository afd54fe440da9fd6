// Between a model in memory and a checkpoint file.
#pragma once

#include "nn/transformer.h"
#include "train/checkpoint_file.h"
#include "train/optimizer.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Parameters, each once, by name; config and vocabulary. The caller adds metrics and training state.
CheckpointFile store_model(const Config& config, const std::vector<std::string>& vocabulary, const Model& model);
/// A model of `config` with the file's numbers. Throws FileError listing every tensor that is missing, unexpected or of
/// another shape. Numbers of the other precision are converted. `path` stands in messages.
Model load_model(const CheckpointFile& file, const ModelConfig& config, const std::string& path);

/// The optimizer's moments, by parameter.
std::vector<StoredTensor> store_moments(const Model& model, AdamW& optimizer);
void load_moments(const std::vector<StoredTensor>& stored, const Model& model, AdamW& optimizer,
                  const std::string& path);

}  // namespace tapehead::inline TAPEHEAD_REAL
