// One head as a file: CSV, SVG and PNG. The same map gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "train/attention_map.h"

namespace tapehead {

/// Every cell of every map, one a line: kind,layer,head,query,query_token,key,key_token,visible,weight. Weights to nine
/// digits, so that a float reads back the same; fields as in RFC 4180.
std::string to_csv(const std::vector<AttentionMap>& maps);

struct Caption {
  std::string title, command;
};
/// A drawing with axes, legend, how to read it, and the command. Throws ConfigError beyond 65,536 cells.
std::string to_svg(const AttentionMap& map, const Caption& caption);

/// The same in pixels, for maps of any size; caption and how to read it stand in the file's text fields, too. Throws
/// Error.
std::string to_png(const AttentionMap& map, const Caption& caption);

}  // namespace tapehead
