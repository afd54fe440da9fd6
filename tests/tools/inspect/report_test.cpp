// What stands in report.html, read back from its bytes; a browser's view of it is tests/browser/.
#include "tools/inspect/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/error.h"
#include "tests/errors.h"
#include "train/map_measures.h"

namespace tapehead {
namespace {

using nlohmann::json;
using test::contains;
using test::error_of;

AttentionMap causal_map(int length, std::int32_t head) {
  AttentionMap map;
  map.kind = "decoder";
  map.head = head;
  map.rows = map.columns = length;
  for (int i = 0; i < length; ++i) {
    map.row_tokens.push_back("t" + std::to_string(i));
    map.ideal.push_back(i - 1);
    for (int j = 0; j < length; ++j) {
      map.visible.push_back(j <= i);
      map.weights.push_back(j <= i ? 1.0f / static_cast<float>(i + 1) : 0);
    }
  }
  map.column_tokens = map.row_tokens;
  return map;
}

Report report_of(int length, std::size_t snapshots) {
  Report report;
  report.title = "<b>";
  report.rule = "copy source";
  for (std::size_t i = 0; i < snapshots; ++i)
    report.history.add({i, NAN, 0.5, {causal_map(length, 0), causal_map(length, 1)}}, SnapshotReason::grid);
  return report;
}

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const std::size_t at = text.find(open) + open.size();
  return text.substr(at, text.find(close, at) - at);
}

json data_of(const std::string& html) {
  return json::parse(between(html, "id=\"report\">", "</script>"));  // \u003c and the like are JSON's own
}

TEST(Inert, LetsNothingEndTheBlock_F61) {
  const std::string hostile = "</script><!-- & \xe2\x80\xa8 \xe2\x80\xa9 \xe2\x80\xaa";
  const std::string text = inert(json(hostile).dump());
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << text;
  EXPECT_FALSE(contains(text, "\xe2\x80\xa8") || contains(text, "\xe2\x80\xa9")) << text;
  EXPECT_EQ(json::parse(text), hostile);
}

// RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  const char* rows[][2] = {{"", ""},
                           {"f", "Zg=="},
                           {"fo", "Zm8="},
                           {"foo", "Zm9v"},
                           {"foob", "Zm9vYg=="},
                           {"fooba", "Zm9vYmE="},
                           {"foobar", "Zm9vYmFy"},
                           {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : rows) EXPECT_EQ(base64(bytes), text);
}

TEST(ReportHtml, HoldsTokensWhole_F61) {
  Report report = report_of(2, 1);
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>", "{{bytes}}<!--\xe2\x80\xa8\xff"};
  for (AttentionMap& head : report.history.heads) head.row_tokens = head.column_tokens = hostile;
  const std::string html = report_html(report, 1'000'000);
  const json tokens = data_of(html)["heads"][0]["view"]["rowTokens"];
  EXPECT_EQ(tokens[0], hostile[0]);
  EXPECT_TRUE(contains(tokens[1], "{{bytes}}<!--"));  // not filled in; what is no UTF-8 is replaced
  EXPECT_TRUE(contains(html, "<title>&lt;b&gt;"));
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = html.find("<script", at)) != html.npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 3u);
}

TEST(ReportHtml, WritesNoNumberThatIsNone) {
  const std::string html = report_html(report_of(3, 2), 1'000'000);
  const std::string text = between(html, "id=\"report\">", "</script>");
  EXPECT_TRUE(data_of(html)["snapshots"][0]["loss"].is_null());
  for (const char* word : {":nan", ":inf", "NaN", "Infinity"}) EXPECT_FALSE(contains(text, word)) << word;
}

TEST(ReportHtml, KeepsWithinItsBudgetByFewerSnapshotsAndSaysSo) {
  const std::string whole = report_html(report_of(64, 40), 16'000'000);
  EXPECT_EQ(data_of(whole)["snapshots"].size(), 40u);
  EXPECT_TRUE(data_of(whole)["about"]["notes"].empty());
  const std::size_t budget = 300'000;
  ASSERT_GT(whole.size(), budget);
  const std::string small = report_html(report_of(64, 40), budget);
  EXPECT_LE(small.size(), budget);
  const json data = data_of(small);
  const std::size_t kept = data["snapshots"].size();
  EXPECT_GT(kept, 3u);
  EXPECT_LT(kept, 40u);
  EXPECT_EQ(data["snapshots"][0]["step"], 0);
  EXPECT_EQ(data["snapshots"][kept - 1]["step"], 39);
  EXPECT_TRUE(contains(data["about"]["notes"][0], std::to_string(kept) + " of 40 snapshots")) << data["about"]["notes"];
}

TEST(ReportHtml, StatesWhatALabelNeeds) {
  const json labels = data_of(report_html(report_of(3, 2), 1'000'000))["labels"];
  EXPECT_EQ(labels["threshold"], kLabelThreshold);
  EXPECT_EQ(labels["names"], json({{"pattern_match", "copy source"},
                                   {"previous", "previous token"},
                                   {"duplicate", "duplicate token"},
                                   {"induction", "induction"}}));
}

// What the end alone holds does not push out what every moment holds.
TEST(ReportHtml, KeepsTheDetailsBesideALargeLastOne) {
  Report report = report_of(8, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    ReportDetail detail;
    detail.snapshot = i;
    detail.lens = {{"embed", std::vector<std::int32_t>(8), std::vector<double>(8)}};
    if (i == 5) detail.circuits.assign(2, {std::vector<float>(10'000), std::vector<float>(10'000), 0});
    report.details.push_back(detail);
  }
  const json details = data_of(report_html(report, 700'000))["details"];
  ASSERT_EQ(details.size(), 6u);
  EXPECT_EQ(details[0]["lens"][0]["name"], "embed");
}

TEST(ReportHtml, RefusesABudgetForNothing) {
  EXPECT_TRUE(contains(error_of<ConfigError>([] { report_html(report_of(8, 2), 1000); }), "--report-size"));
  EXPECT_TRUE(contains(error_of<ConfigError>([] { report_html(report_of(512, 2), 300'000); }), "--report-size"));
}

TEST(ReportHtml, IsTheSameForTheSameRun) {
  EXPECT_EQ(report_html(report_of(16, 9), 1'000'000), report_html(report_of(16, 9), 1'000'000));
}

}  // namespace
}  // namespace tapehead
