// A file of text as a task: predict the next character. The first nine tenths of it are trained on, the last tenth is
// held out.
#pragma once

#include "data/task.h"

namespace tapehead {

/// Characters (Unicode code points) as numbers, in order of their code points.
struct Text {
  std::vector<std::int32_t> ids;
  Vocabulary vocabulary;         // names of one character each; of white space and controls its code, U+000A
  std::int64_t fingerprint = 0;  // 40 bits of FNV-1a over the bytes

  /// Throws FileError, naming the file and the place, for an empty file, a NUL byte (no text) or invalid UTF-8.
  static std::shared_ptr<const Text> decode(const std::string& bytes, const std::string& path);
};

/// A text in the characters of another's vocabulary. Throws ConfigError naming a character that it does not hold.
std::vector<std::int32_t> encode_text(const Vocabulary& vocabulary, const std::string& text);
/// Characters put together again, in UTF-8.
std::string decode_text(const Vocabulary& vocabulary, const std::vector<std::int32_t>& ids);

/// The task "text". Without a text, or with a vocabulary alone, it throws ConfigError when it is to draw.
/// Throws ConfigError for settings out of range, a text that is not the one of a fingerprint, or one that is too short
/// for a window in each of its parts.
std::unique_ptr<Task> make_text(const std::vector<TaskKnob>& settings, std::shared_ptr<const Text> text = {});

}  // namespace tapehead
