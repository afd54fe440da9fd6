#include "tools/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

namespace tapehead {
namespace {

Progress some_progress() {
  Progress p;
  p.step = 150;
  p.steps = 1000;
  p.loss = 0.12344;
  p.exact_match = 0.9849;
  p.tokens_per_second = 2.149e6;
  p.seconds_left = 1.2;
  return p;
}

TEST(ProgressLine, SaysHowFarTrainingHasCome) {
  EXPECT_EQ(progress_line(some_progress(), 80),
            "step  150/1000  loss 0.1234  exact match 98.4 %  2.1M tokens/s  0:02 left");
}

TEST(ProgressLine, LeavesOutWhatDoesNotFit) {
  const Progress p = some_progress();
  EXPECT_EQ(progress_line(p, 72), "step  150/1000  loss 0.1234  exact match 98.4 %  0:02 left");
  EXPECT_EQ(progress_line(p, 57), "step  150/1000  loss 0.1234  exact match 98.4 %");
  EXPECT_EQ(progress_line(p, 46), "step  150/1000  loss 0.1234");
  EXPECT_EQ(progress_line(p, 26), "step  150/1000");
  EXPECT_EQ(progress_line(p, 8), "step  1~");
}

TEST(ProgressLine, LeavesOutWhatIsUnknown) {
  Progress p;
  p.step = 1;
  p.steps = 10;
  EXPECT_EQ(progress_line(p, 80), "step  1/10");
  p.loss = 2.7725887;
  EXPECT_EQ(progress_line(p, 80), "step  1/10  loss 2.7726");
}

TEST(ProgressLine, NeverRoundsUpToAHundredPerCent) {
  Progress p;
  p.exact_match = 0.9999;
  EXPECT_EQ(progress_line(p, 80), "step 0/0  exact match 99.9 %");
  p.exact_match = 1;
  EXPECT_EQ(progress_line(p, 80), "step 0/0  exact match 100 %");
}

TEST(ProgressLine, ChoosesUnits) {
  Progress p;
  p.tokens_per_second = 950;
  p.seconds_left = 59.2;
  EXPECT_EQ(progress_line(p, 80), "step 0/0  950 tokens/s  1:00 left");
  p.tokens_per_second = 12'345;
  p.seconds_left = 3'725;
  EXPECT_EQ(progress_line(p, 80), "step 0/0  12.3k tokens/s  1:02:05 left");
  p.tokens_per_second = 312'000;
  EXPECT_EQ(progress_line(p, 22), "step 0/0  1:02:05 left");
  EXPECT_EQ(progress_line(p, 80), "step 0/0  312k tokens/s  1:02:05 left");
}

// What a display writes while `use` drives it.
template <class Use>
std::string written(const Terminal& terminal, bool quiet, Use use) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    ProgressDisplay display(file.get(), terminal, quiet);
    use(display);
  }
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), ' ');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

Progress at(std::uint64_t step, double loss) {
  Progress p;
  p.step = step;
  p.steps = 100;
  p.loss = loss;
  return p;
}

TEST(ProgressDisplay, UpdatesOneLineOfATerminal) {
  const std::string text = written({Colour::none, false, 80, true}, false, [](ProgressDisplay& display) {
    display.update(at(1, 10), 0);
    display.update(at(2, 5), 0.05);  // too soon
    display.update(at(3, 2), 0.11);
  });
  EXPECT_EQ(text, "\rstep   1/100  loss 10.0000\rstep   3/100  loss 2.0000 \n");
}

TEST(ProgressDisplay, ShowsTheLastStepEvenWhenItCameTooSoon) {
  const std::string text = written({Colour::none, false, 80, true}, false, [](ProgressDisplay& display) {
    display.update(at(1, 1), 0);
    display.update(at(2, 1), 0.01);
    display.finish();
    display.finish();
  });
  EXPECT_EQ(text, "\rstep   1/100  loss 1.0000\rstep   2/100  loss 1.0000\n");
}

TEST(ProgressDisplay, StaysWithinANarrowTerminal) {
  const std::string text =
      written({Colour::none, false, 20, true}, false, [](ProgressDisplay& display) { display.update(at(1, 1), 0); });
  EXPECT_EQ(text, "\rstep   1/100\n");
}

TEST(ProgressDisplay, WritesPlainLinesNowAndThenElsewhere) {
  const std::string text = written({Colour::none, false, 80, false}, false, [](ProgressDisplay& display) {
    display.update(at(1, 4), 1);
    display.update(at(2, 3), 5);
    display.update(at(3, 2), 9);
    display.update(at(4, 1), 11);
    display.update(at(5, 1), 12);
  });
  EXPECT_EQ(text, "step   2/100  loss 3.0000\nstep   4/100  loss 1.0000\nstep   5/100  loss 1.0000\n");
}

TEST(ProgressDisplay, IsSilentWhenQuietOrUnused) {
  const Terminal terminal{Colour::none, false, 80, true};
  EXPECT_EQ(written(terminal, true, [](ProgressDisplay& display) { display.update(at(1, 1), 0); }), "");
  EXPECT_EQ(written(terminal, false, [](ProgressDisplay&) {}), "");
}

}  // namespace
}  // namespace tapehead
