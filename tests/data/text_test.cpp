// A text as characters, what is refused as a text, and the windows that training and evaluation draw from it.
#include "data/text.h"

#include <gtest/gtest.h>

#include "data/batch.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::contains;
using test::error_of;
using Ids = std::vector<std::int32_t>;

std::shared_ptr<const Text> decode(const std::string& bytes) { return Text::decode(bytes, "f.txt"); }

TEST(Text, NumbersCharactersInOrderOfTheirCodePoints) {
  const auto text = decode("ba\n\xc3\xa9 a\xf0\x9f\x98\x80");  // b a newline e-acute space a emoji
  EXPECT_EQ(text->vocabulary.tokens(),
            (std::vector<std::string>{"U+000A", "U+0020", "a", "b", "\xc3\xa9", "\xf0\x9f\x98\x80"}));
  EXPECT_EQ(text->ids, (Ids{3, 2, 0, 4, 1, 2, 5}));
}

TEST(Text, RefusesWhatIsNoText_F55) {
  EXPECT_EQ(error_of<FileError>([] { decode(""); }), "[text] f.txt is empty. Hint: give a file of text.");
  EXPECT_TRUE(contains(error_of<FileError>([] { decode(std::string("ab\0c", 4)); }), "holds a NUL at byte 2"));
  // A lone continuation, a cut sequence, an overlong slash, a surrogate, beyond U+10FFFF, Latin-1.
  for (const char* bytes : {"ok\x80", "ok\xe2\x82", "ok\xc0\xaf", "ok\xed\xa0\x80", "ok\xf4\x90\x80\x80", "ok\xe9t"})
    EXPECT_TRUE(contains(error_of<FileError>([&] { decode(bytes); }), "f.txt is not UTF-8 at byte 2")) << bytes;
}

TEST(Text, IsWrittenAndReadBackInAnothersCharacters) {
  const std::string bytes = "b\n \u00a0\u20acz\U0001F600 a";
  const auto text = Text::decode(bytes, "file");
  EXPECT_EQ(decode_text(text->vocabulary, text->ids), bytes);
  EXPECT_EQ(encode_text(text->vocabulary, bytes), text->ids);
  EXPECT_EQ(decode_text(text->vocabulary, encode_text(text->vocabulary, "z\na")), "z\na");
  const std::string message = error_of<ConfigError>([&] { encode_text(text->vocabulary, "az?"); });  // F53
  EXPECT_TRUE(contains(message, "'?'")) << message;
}

TEST(TextTask, DrawsWindowsFromItsPartOfTheText) {
  std::string bytes;  // character number i stands at place i
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i < 90 ? '!' + i : i - 89);
  const auto text = decode(bytes);
  const auto task = make_text({{"length", 4}}, text);
  std::vector<int> seen(bytes.size());
  for (const bool side : {false, true}) {
    rng::Generator random(rng::Stream(3, rng::Purpose::check));
    for (int i = 0; i < 3000; ++i) {
      Example e;
      task->draw_side(side, random, e);
      ASSERT_EQ(e.source.size(), 4U);
      const auto at = std::search(text->ids.begin(), text->ids.end(), e.source.begin(), e.source.end());
      const auto place = static_cast<std::size_t>(at - text->ids.begin());
      for (std::size_t m = 0; m < 4; ++m) {
        ASSERT_EQ(e.target[m], text->ids[place + m + 1]);
        ASSERT_EQ(place + m + 1 >= 90, side || place >= 90) << place;
        ++seen[place + m + 1];
      }
    }
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(seen[i] > 0, i != 0 && i != 90) << i;  // the first of each part is read and never asked for
}

TEST(TextTask, ADecoderReadsTheSourceAloneAndEveryTargetCounts) {
  const auto task = make_text({{"length", 3}}, decode("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"));
  BatchSource source(*task, Layout::joined, 5, 1);
  const Batch& batch = source.training(1);
  EXPECT_EQ(longest_sequence(*task, Layout::joined), 3);
  EXPECT_EQ(batch.target_length, 3);
  EXPECT_EQ(batch.counted, 15);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(batch.targets[i], (batch.inputs[i] + 1) % 26) << i;
  for (const Layout layout : {Layout::aligned, Layout::split})
    EXPECT_TRUE(contains(error_of<ConfigError>([&] { BatchSource(*task, layout, 5, 1); }), "decoder"));
}

TEST(TextTask, RefusesATextShorterThanAWindowAndAnotherThanItBeganWith) {
  const auto text = decode(std::string(100, 'a') + "b");
  EXPECT_TRUE(contains(error_of<ConfigError>([&] {
                         make_text({{"length", 10}}, text);
                       }),
                       "its last tenth has 10 characters, a window needs 11"));
  const auto knobs = make_text({{"length", 9}}, text)->knobs();
  EXPECT_NO_THROW(make_text(knobs, text));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { make_text(knobs, decode(std::string(100, 'a') + "c")); }),
                       "this is not the text of this run"));
}

}  // namespace
}  // namespace tapehead
