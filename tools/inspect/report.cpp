#include "tools/inspect/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "autograd/error.h"
#include "tools/command.h"
#include "tools/inspect/page.h"
#include "tools/inspect/text.h"
#include "train/map_measures.h"

namespace tapehead {

using Json = nlohmann::ordered_json;

std::string inert(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const bool separator = json.compare(i, 3, "\u2028") == 0 || json.compare(i, 3, "\u2029") == 0;
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else if (separator) {
      out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + k])) : 0);
    for (std::size_t k = 0; k < 4; ++k) out += k <= left ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

namespace {

// Binary data of the page: appended pieces, each found again by its offset and count.
class Bytes {
 public:
  template <class T>
  Json add(const std::vector<T>& numbers) {
    while (bytes_.size() % sizeof(T) != 0) bytes_ += '\0';
    const std::size_t offset = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
    return {offset, numbers.size()};
  }
  const std::string& all() const { return bytes_; }

 private:
  std::string bytes_;
};

// --- what fits

// `count` of 0 .. all - 1, first and last among them.
std::vector<std::size_t> spread(std::size_t all, std::size_t count) {
  std::vector<std::size_t> chosen;
  if (count == 1 && all > 0) return {all - 1};
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(static_cast<std::size_t>(
        std::lround(static_cast<double>(i) * static_cast<double>(all - 1) / static_cast<double>(count - 1))));
  return chosen;
}

std::size_t detail_bytes(const ReportDetail& detail) {
  std::size_t bytes = 0;
  for (const HeadProjections& p : detail.projections) bytes += 4 * (p.q.size() + p.k.size() + p.v.size());
  for (const HeadEvidence& e : detail.evidence) bytes += 2 * (e.gradient.size() + e.norm_weighted.size());
  for (const std::vector<float>& cells : detail.knock_outs) bytes += 2 * cells.size();
  for (const HeadCircuits& c : detail.circuits) bytes += 2 * (c.qk.size() + c.ov.size());
  for (const LensLayer& layer : detail.lens) bytes += 8 * layer.likeliest.size();
  for (const Attribution& a : detail.attributions) bytes += 8 * a.parts.size();
  return bytes;
}

// Keeps fewer details, then fewer snapshots, until `bytes` of binary data hold them.
void shrink(Report& report, std::size_t bytes) {
  const std::size_t all_details = report.details.size(), all = report.history.size();
  if (all_details > 0 && detail_bytes(report.details.back()) > bytes / 3)
    for (ReportDetail& detail : report.details) detail.evidence.clear();
  if (all_details > 0) {
    const auto take = [&](std::size_t count) {
      std::size_t sum = 0;
      for (const std::size_t i : spread(all_details, count)) sum += detail_bytes(report.details[i]);
      return sum;
    };
    const std::size_t three = 3 * AttentionHistory::packed_bytes(report.history.heads);
    const std::size_t room = std::min(bytes / 3, bytes - std::min(bytes, three));
    std::size_t fit = all_details;
    while (fit > 1 && take(fit) > room) --fit;
    if (take(fit) > room && take(fit) >= bytes / 2) fit = 0;
    const std::size_t taken = take(fit);
    std::vector<ReportDetail> kept;
    for (const std::size_t i : spread(all_details, fit)) kept.push_back(std::move(report.details[i]));
    report.details = std::move(kept);
    bytes -= taken;
  }
  const std::size_t each = std::max<std::size_t>(
      AttentionHistory::packed_bytes(report.history.heads) + report.history.heads.size() * 7 * sizeof(float), 1);
  const std::size_t fit = std::min(all, bytes / each);
  if (fit == 0 && all > 0)
    throw ConfigError(error_line("report",
                                 fmt::format("one snapshot takes {:.1f} MB, more than is left of the report",
                                             static_cast<double>(each) * 4 / 3 / 1e6),
                                 {}, "give a larger --report-size"));
  std::vector<std::size_t> chosen = spread(all, fit);
  std::vector<PackedSnapshot> kept;
  kept.reserve(chosen.size());
  std::vector<ReportDetail> details;
  details.reserve(report.details.size());
  for (ReportDetail& detail : report.details) {  // each detail goes with its snapshot, in the place of the nearest
    const auto nearest = std::ranges::min_element(
        chosen, {}, [&](std::size_t i) { return i > detail.snapshot ? i - detail.snapshot : detail.snapshot - i; });
    if (std::ranges::find(chosen, detail.snapshot) == chosen.end() && *nearest != 0 && *nearest + 1 != all)
      *nearest = detail.snapshot;
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (ReportDetail& detail : report.details) {
    const auto at = std::ranges::find(chosen, detail.snapshot);
    if (at == chosen.end()) continue;
    detail.snapshot = static_cast<std::size_t>(at - chosen.begin());
    details.push_back(std::move(detail));
  }
  for (const std::size_t i : chosen) kept.push_back(std::move(report.history.snapshots[i]));
  report.history.snapshots = std::move(kept);
  report.details = std::move(details);
  if (report.history.size() < all || report.details.size() < all_details)
    report.notes.push_back(fmt::format(
        "To keep this page small, it holds {} of {} snapshots, spread evenly in log(step), and ledger, ablation and "
        "evidence at {} of {}. A larger --report-size holds more.",
        report.history.size(), all, report.details.size(), all_details));
}

// --- the parts as JSON

Json heads_json(const Report& report, Bytes& bytes) {
  Json heads = Json::array();
  std::vector<std::pair<const std::vector<std::uint8_t>*, Json>> masks;  // most heads have the same
  const auto mask_of = [&](const AttentionMap& head) {
    for (const auto& [visible, json] : masks)
      if (*visible == head.visible) return json;
    masks.emplace_back(&head.visible, bytes.add(head.visible));
    return masks.back().second;
  };
  for (std::size_t h = 0; h < report.history.heads.size(); ++h) {
    const AttentionMap& head = report.history.heads[h];
    Json json = {{"kind", head.kind}, {"layer", head.layer}, {"head", head.head}};
    // Heads of one attention share their view.
    if (h > 0 && report.history.heads[h - 1].kind == head.kind && report.history.heads[h - 1].layer == head.layer &&
        report.history.heads[h - 1].visible == head.visible)
      json["view"] = heads.back()["view"];
    else
      json["view"] = {{"rows", head.rows},
                      {"columns", head.columns},
                      {"rowTokens", head.row_tokens},
                      {"columnTokens", head.column_tokens},
                      {"ideal", head.ideal},
                      {"visible", mask_of(head)}};
    heads.push_back(std::move(json));
  }
  return heads;
}

Json snapshots_json(const Report& report, Bytes& bytes) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.history.size(); ++i) {
    const PackedSnapshot& packed = report.history.snapshots[i];
    std::vector<float> measures;
    Json findings = Json::array();
    for (const AttentionMap& map : report.history.at(i).maps) {
      const MapMeasures m = measure(map);
      for (const double x : as_list(m)) measures.push_back(static_cast<float>(x));
      findings.push_back(finding(map, m, report.rule));
    }
    list.push_back({{"step", packed.step},
                    {"loss", json_number(packed.loss)},
                    {"exact", json_number(packed.exact_match)},
                    {"reason", static_cast<int>(packed.reason)},
                    {"weights", bytes.add(packed.weights)},
                    {"measures", bytes.add(measures)},
                    {"findings", std::move(findings)}});
  }
  return list;
}

// Numbers in 16 bits: x = packed / 32767 * scale; the least is what is no number.
Json add_signed(Bytes& bytes, const std::vector<float>& numbers) {
  constexpr std::int16_t kNoNumber = -32768;
  float largest = 0;
  for (const float x : numbers) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  std::vector<std::int16_t> packed;
  packed.reserve(numbers.size());
  for (const float x : numbers)
    packed.push_back(std::isfinite(x) && largest > 0 ? static_cast<std::int16_t>(std::lround(x / largest * 32767))
                     : std::isfinite(x)              ? std::int16_t{0}
                                                     : kNoNumber);
  Json json = bytes.add(packed);
  json.push_back(largest);
  return json;
}

Json outcome_json(const Outcome& outcome) { return {json_number(outcome.exact_match), json_number(outcome.loss)}; }

// By layer what it would say, [row] each.
Json lens_json(const std::vector<LensLayer>& layers, Bytes& bytes) {
  Json list = Json::array();
  for (const LensLayer& layer : layers)
    list.push_back(
        {{"name", layer.name},
         {"likeliest", bytes.add(layer.likeliest)},
         {"probability", bytes.add(std::vector<float>(layer.probability.begin(), layer.probability.end()))}});
  return list;
}

// The parts' names once, for all rows; then each row's numbers, in that order.
Json attributions_json(const std::vector<Attribution>& attributions, Bytes& bytes) {
  Json names = Json::array(), rows = Json::array();
  for (const Attribution::Part& part : attributions.front().parts) names.push_back(part.name);
  for (const Attribution& a : attributions) {
    std::vector<float> values, leads;
    for (const Attribution::Part& part : a.parts) {
      values.push_back(static_cast<float>(part.value));
      leads.push_back(static_cast<float>(part.lead));
    }
    rows.push_back({{"row", a.row},
                    {"other", a.other},
                    {"logit", json_number(a.logit)},
                    {"lead", json_number(a.lead)},
                    {"values", bytes.add(values)},
                    {"leads", bytes.add(leads)}});
  }
  return {{"parts", std::move(names)}, {"rows", std::move(rows)}};
}

Json compositions_json(const std::vector<HeadComposition>& compositions) {
  Json pairs = Json::array();
  for (const HeadComposition& c : compositions)
    pairs.push_back({c.from, c.to, json_number(c.q), json_number(c.k), json_number(c.v)});
  return pairs;
}

Json detail_json(const ReportDetail& detail, Bytes& bytes) {
  Json heads = Json::array();
  for (std::size_t h = 0; h < detail.projections.size(); ++h) {
    const HeadProjections& p = detail.projections[h];
    Json head = {{"D", p.D},     {"Dv", p.Dv},          {"scale", p.scale},    {"temperature", p.temperature},
                 {"dot", p.dot}, {"q", bytes.add(p.q)}, {"k", bytes.add(p.k)}, {"v", bytes.add(p.v)}};
    if (h < detail.evidence.size()) {
      head["gradient"] = add_signed(bytes, detail.evidence[h].gradient);
      head["norm"] = add_signed(bytes, detail.evidence[h].norm_weighted);
      head["agreement"] = json_number(detail.evidence[h].agreement);
    }
    if (h < detail.knock_outs.size()) head["knockOut"] = add_signed(bytes, detail.knock_outs[h]);
    if (h < detail.circuits.size()) {
      head["qk"] = add_signed(bytes, detail.circuits[h].qk);
      head["ov"] = add_signed(bytes, detail.circuits[h].ov);
      head["copying"] = json_number(detail.circuits[h].copying);
    }
    if (h < detail.importance.size()) head["importance"] = json_number(detail.importance[h]);
    if (h < detail.zeroed.size()) {
      head["zeroed"] = outcome_json(detail.zeroed[h]);
      head["averaged"] = outcome_json(detail.averaged[h]);
      head["without"] = ablation_finding(detail.base.exact_match, detail.zeroed[h].exact_match);
    }
    heads.push_back(std::move(head));
  }
  if (detail.patching)
    for (std::size_t h = 0; h < heads.size(); ++h) heads[h]["recovered"] = json_number(detail.patching->recovered[h]);
  Json json = {{"snapshot", detail.snapshot}, {"base", outcome_json(detail.base)}, {"heads", std::move(heads)}};
  if (!detail.lens.empty()) json["lens"] = lens_json(detail.lens, bytes);
  if (!detail.attributions.empty()) json["attribution"] = attributions_json(detail.attributions, bytes);
  if (detail.patching) json["patching"] = {json_number(detail.patching->clean), json_number(detail.patching->corrupt)};
  if (!detail.compositions.empty()) json["compositions"] = compositions_json(detail.compositions);
  return json;
}

Json curves_json(const Metrics& metrics) {
  constexpr std::size_t kMost = 2000;  // points that a screen can show
  Json step = Json::array(), loss = Json::array(), evaluations = Json::array();
  const std::size_t every = (metrics.steps.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < metrics.steps.size(); ++i)
    if (i % every == 0 || i + 1 == metrics.steps.size()) {
      step.push_back(metrics.steps[i].step);
      loss.push_back(json_number(std::round(metrics.steps[i].loss * 1e5) / 1e5));
    }
  for (const auto& e : metrics.evaluations)
    evaluations.push_back({e.step, json_number(e.loss), json_number(e.token_accuracy), json_number(e.exact_match)});
  return {{"step", std::move(step)}, {"loss", std::move(loss)}, {"evaluations", std::move(evaluations)}};
}

Json example_json(const WorkedExample& e) {
  return {{"source", e.source}, {"inputs", e.inputs}, {"expected", e.expected}, {"predicted", e.predicted}};
}

Json about_json(const Report& report) {
  Json parameters = Json::array();
  for (const NamedShape& p : report.parameters) parameters.push_back({p.name, p.shape});
  Json json = {{"title", report.title},
               {"subtitle", report.subtitle},
               {"command", report.command},
               {"config", report.config},
               {"task", report.task},
               {"summary", report.summary},
               {"rule", report.rule},
               {"parameters", std::move(parameters)},
               {"parameterCount", report.parameter_count},
               {"bestStep", report.best_step},
               {"heldOut", report.held_out},
               {"ablationSequences", report.ablation_sequences},
               {"notes", report.notes},
               {"example", example_json(report.example)}};
  if (!report.corrupt.inputs.empty()) json["corrupt"] = example_json(report.corrupt);
  if (!report.live.empty()) json["live"] = true;
  if (report.learned) json["learned"] = outcome_json(*report.learned);
  return json;
}

// Which measures give a label, which one, and from what on.
Json labels_json(const std::string& rule) {
  Json names = Json::object();
  for (const std::string& measure : measure_names())
    if (const std::string name = label_of(measure, rule); !name.empty()) names[measure] = name;
  return {{"threshold", kLabelThreshold}, {"names", std::move(names)}};
}

Json report_json(const Report& report, Bytes& bytes) {
  Json json = {{"format", 1},
               {"about", about_json(report)},
               {"curves", curves_json(report.metrics)},
               {"measureNames", measure_names()},
               {"labels", labels_json(report.rule)},
               {"vocabulary", report.vocabulary},
               {"heads", heads_json(report, bytes)},
               {"snapshots", snapshots_json(report, bytes)}};
  Json details = Json::array();
  for (const ReportDetail& detail : report.details) details.push_back(detail_json(detail, bytes));
  json["details"] = std::move(details);
  return json;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The template with {{name}} replaced. What is put in is not looked through again.
std::string filled(const std::vector<std::pair<std::string_view, std::string_view>>& parts) {
  std::string out;
  std::string_view rest = page::kTemplate;
  for (std::size_t open; (open = rest.find("{{")) != rest.npos;) {
    const std::size_t close = rest.find("}}", open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    out += rest.substr(0, open);
    for (const auto& [key, text] : parts)
      if (key == name) out += text;
    rest.remove_prefix(close + 2);
  }
  return out += rest;
}

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string page_of(const Report& report) {
  Bytes bytes;
  const Json json = report_json(report, bytes);
  const std::string policy =
      fmt::format("default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'{}",
                  page::kScriptHash, page::kStyleHash, report.live.empty() ? "" : "; connect-src " + report.live);
  const std::string data = inert(text_of(json));
  return filled({{"policy", policy},
                 {"title", html_text(text::line(report.title, true))},
                 {"style", page::kStyle},
                 {"script", page::kScript},
                 {"data", data},
                 {"bytes", base64(bytes.all())}});
}

}  // namespace

std::string report_growth(const Report& part, bool done) {
  Bytes bytes;
  Json json = {{"snapshots", snapshots_json(part, bytes)}, {"curves", curves_json(part.metrics)}};
  json["bytes"] = base64(bytes.all());
  json["done"] = done;
  return text_of(json);
}

std::string report_html(Report report, std::size_t budget) {
  // First without what can be left out: the size of all that must be there.
  Report least = report;
  least.details.clear();
  least.history.snapshots.clear();
  const std::size_t fixed = page_of(least).size();
  const std::size_t findings = report.history.size() * report.history.heads.size() * 160;
  if (fixed + findings >= budget)
    throw ConfigError(error_line(
        "report",
        fmt::format("the page takes {:.1f} MB without any snapshot", static_cast<double>(fixed + findings) / 1e6), {},
        "give a larger --report-size"));
  shrink(report, (budget - fixed - findings) / 4 * 3);
  return page_of(report);
}

}  // namespace tapehead
