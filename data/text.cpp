#include "data/text.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "autograd/error.h"
#include "data/builtin.h"

namespace tapehead {

namespace {

// The code point that begins at `at`, and how many bytes it takes; 0 bytes for what is no UTF-8 (RFC 3629: neither
// overlong forms nor surrogates).
struct CodePoint {
  char32_t value;
  std::size_t size;
};
CodePoint code_point(const std::string& bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (size == 0 || first > 0xf4 || at + size > bytes.size()) return {0, 0};
  char32_t value = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {0, 0};
    value = value << 6 | (byte(at + i) & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = value >= kLeast[size] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
  return valid ? CodePoint{value, size} : CodePoint{0, 0};
}

std::string name_of_character(char32_t c, const std::string& bytes) {
  if (c > 0x20 && c < 0x7f) return bytes;
  if (c > 0xa0 && (c < 0x2000 || c > 0x200f) && c != 0x2028 && c != 0x2029 && c != 0x3000) return bytes;
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
  return code;
}

std::int64_t fingerprint_of(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::int64_t>((hash ^ hash >> 40) & 0xffffffffff);
}

}  // namespace

std::shared_ptr<const Text> Text::decode(const std::string& bytes, const std::string& path) {
  const auto refuse = [&](const std::string& fact, const char* hint) {
    throw FileError(error_line("text", path + " " + fact, "", hint));
  };
  if (bytes.empty()) refuse("is empty", "give a file of text");
  std::vector<char32_t> characters;
  std::map<char32_t, std::string> names;  // in order of code points
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point(bytes, at);
    if (c.size == 0) refuse("is not UTF-8 at byte " + std::to_string(at), "convert it, as with iconv -t UTF-8");
    if (c.value == 0) refuse("holds a NUL at byte " + std::to_string(at) + ": it is no text", "give a file of text");
    characters.push_back(c.value);
    if (!names.contains(c.value)) names[c.value] = name_of_character(c.value, bytes.substr(at, c.size));
    at += c.size;
  }
  auto text = std::make_shared<Text>();
  std::map<char32_t, std::int32_t> number;
  std::vector<std::string> tokens;
  for (const auto& [value, name] : names) {
    number[value] = static_cast<std::int32_t>(tokens.size());
    tokens.push_back(name);
  }
  text->vocabulary = Vocabulary(std::move(tokens));
  text->ids.reserve(characters.size());
  for (const char32_t c : characters) text->ids.push_back(number[c]);
  text->fingerprint = fingerprint_of(bytes);
  return text;
}

std::vector<std::int32_t> encode_text(const Vocabulary& vocabulary, const std::string& text) {
  const auto own = Text::decode(text, "the text");
  std::vector<std::int32_t> ids;
  ids.reserve(own->ids.size());
  for (const std::int32_t id : own->ids) ids.push_back(vocabulary.id(own->vocabulary[id]));
  return ids;
}

std::string decode_text(const Vocabulary& vocabulary, const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string& name = vocabulary[id];
    if (!name.starts_with("U+") || name.size() < 6) {
      text += name;
      continue;
    }
    const auto c = static_cast<std::uint32_t>(std::stoul(name.substr(2), nullptr, 16));
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    const auto follow = [&](unsigned shift) { put(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x80) put(c);
    if (c >= 0x80 && c < 0x800) put(0xc0 | c >> 6), follow(0);
    if (c >= 0x800 && c < 0x10000) put(0xe0 | c >> 12), follow(6), follow(0);
    if (c >= 0x10000) put(0xf0 | c >> 18), follow(12), follow(6), follow(0);
  }
  return text;
}

namespace {

class TextTask final : public Task {
 public:
  TextTask(std::vector<TaskKnob> knobs, std::shared_ptr<const Text> text)
      : knobs_(std::move(knobs)), text_(std::move(text)), length_(static_cast<std::size_t>(knobs_[0].value)) {
    if (!text_ || text_->ids.empty()) return;
    if (knobs_[1].value != 0 && knobs_[1].value != text_->fingerprint)
      throw ConfigError(error_line("text", "this is not the text of this run", "", "give the file it began with"));
    knobs_[1].value = text_->fingerprint;
    boundary_ = text_->ids.size() - text_->ids.size() / 10;
    if (text_->ids.size() - boundary_ <= length_)
      throw ConfigError(error_line("text",
                                   "its last tenth has " + std::to_string(text_->ids.size() - boundary_) +
                                       " characters, a window needs " + std::to_string(length_ + 1),
                                   "", "give a longer text or lower data.length"));
  }

  std::string name() const override { return "text"; }
  std::string summary() const override { return "predict the next character of a text"; }
  const Vocabulary& vocabulary() const override {
    static const Vocabulary none;
    return text_ ? text_->vocabulary : none;
  }
  std::int32_t separator() const override { return -1; }
  std::vector<TaskKnob> knobs() const override { return knobs_; }
  std::int64_t source_length() const override { return static_cast<std::int64_t>(length_); }
  std::int64_t target_length() const override { return static_cast<std::int64_t>(length_); }
  bool aligned() const override { return false; }
  bool continues() const override { return true; }

  void draw(rng::Generator& random, Example& example) const override { draw_side(false, random, example); }
  void draw_side(bool held_out, rng::Generator& random, Example& example) const override {
    if (!text_ || text_->ids.empty())
      throw ConfigError(error_line("text", "the text is missing", "", "give it with --data FILE"));
    const std::size_t begin = held_out ? boundary_ : 0, end = held_out ? text_->ids.size() : boundary_;
    const std::size_t at = begin + random.below(static_cast<std::uint32_t>(end - begin - length_));
    const auto first = text_->ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto length = static_cast<std::ptrdiff_t>(length_);
    example.source.assign(first, first + length);
    example.target.assign(first + 1, first + 1 + length);
    example.link.resize(length_);
    for (std::size_t m = 0; m < length_; ++m) example.link[m] = static_cast<std::int32_t>(m);
  }
  void answer(Example&) const override { throw ConfigError(error_line("text", "a text has no rule that answers")); }

 private:
  std::vector<TaskKnob> knobs_;
  std::shared_ptr<const Text> text_;
  std::size_t length_, boundary_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_text(const std::vector<TaskKnob>& settings, std::shared_ptr<const Text> text) {
  return std::make_unique<TextTask>(
      with_settings("text",
                    {{"length", 64, 1, 65536, "characters of a window"},
                     {"fingerprint", 0, 0, 0xffffffffff, "of the file, so that a run goes on with the same; 0: any"}},
                    settings),
      std::move(text));
}

}  // namespace tapehead
