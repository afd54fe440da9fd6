// Attention that another program computed: arrays of PyTorch or NumPy as maps.
#pragma once

#include <string>
#include <vector>

#include "train/attention_map.h"

namespace tapehead {

/// True for a name that ends in .npy or .npz.
bool names_matrices(const std::string& path);

/// The arrays of an .npy or .npz file as maps of shape [..., T, S]. The axis before T counts heads, the one before that
/// layers; an array whose name holds "layers.3" or "blocks.3" is of layer 3. What lies above the diagonal is masked
/// when all of it is 0. `tokens_path`: a token a line, or a JSON list, or {"rows": [...], "columns": [...]}; "": none.
/// Throws FileError or ConfigError.
std::vector<AttentionMap> read_matrices(const std::string& path, const std::string& tokens_path);

}  // namespace tapehead
