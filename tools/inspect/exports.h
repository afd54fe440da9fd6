// Files that inspect writes in the place of drawing in the terminal.
#pragma once

#include <string>
#include <vector>

#include "tools/inspect/npy.h"
#include "tools/inspect/pictures.h"

namespace tapehead {

struct ExportFiles {
  std::string html, csv, npz, safetensors, svg, png;  // paths; empty: not wanted
  bool any() const { return !(html + csv + npz + safetensors + svg + png).empty(); }
  bool arrays() const { return !(npz + safetensors).empty(); }
  /// Throws FileError when one of them could not be written.
  void require_writable() const;
};

/// Writes csv, npz and safetensors of all maps, svg and png of `large`; html is the caller's. `command` remakes a file
/// that its path is put behind. One line a file, for a person.
std::string write_exports(const ExportFiles& files, const std::vector<AttentionMap>& maps, const AttentionMap& large,
                          const Caption& caption, const std::vector<NamedArray>& more_arrays);

/// The weights of each attention [H, T, S] and what is visible [T, S], named as in TransformerLens:
/// "blocks.1.attn.hook_pattern", "encoder.blocks.0.attn.hook_pattern", "blocks.1.cross.hook_pattern". Beside them
/// each stack's "rollout.decoder" [T, T].
std::vector<NamedArray> pattern_arrays(const std::vector<AttentionMap>& maps);
/// "blocks.1.attn." of an attention.
std::string tap_scope(const std::string& kind, std::int32_t layer, bool has_encoder);

}  // namespace tapehead
