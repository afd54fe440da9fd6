// Reads safetensors files: 8 bytes of header size, a JSON header (dtype, shape and data_offsets by key), the data.
#include "tests/golden.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/error.h"
#include "autograd/ops.h"

namespace tapehead::inline TAPEHEAD_REAL::golden {

namespace {

template <class T>
std::vector<double> numbers(std::string_view bytes) {
  std::vector<T> typed(bytes.size() / sizeof(T));
  std::memcpy(typed.data(), bytes.data(), bytes.size());
  return {typed.begin(), typed.end()};
}

std::vector<double> numbers(const std::string& dtype, std::string_view bytes) {
  if (dtype == "F64") return numbers<double>(bytes);
  if (dtype == "F32") return numbers<float>(bytes);
  if (dtype == "I32") return numbers<std::int32_t>(bytes);
  if (dtype == "BOOL") return numbers<std::uint8_t>(bytes);
  throw FileError(error_line("golden", "unknown dtype " + dtype));
}

/// max|a - b|; infinite for another size or a NaN, which a plain maximum would lose.
double distance(std::span<const Real> a, std::span<const double> b) {
  double largest = 0;
  if (a.size() != b.size()) return INFINITY;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(d <= largest)) largest = std::isnan(d) ? INFINITY : d;
  }
  return largest;
}

}  // namespace

// --- files

File::File(const std::string& name)
    : path_(std::string(TAPEHEAD_SOURCE_DIR) + "/tests/golden/" + name + ".safetensors") {
  std::ifstream stream(path_, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(stream), {});
  std::uint64_t size = 0;
  if (content.size() < sizeof size) throw FileError(error_line("golden", path_ + " is missing or empty"));
  std::memcpy(&size, content.data(), sizeof size);
  const std::string_view data = std::string_view(content).substr(sizeof size + size);
  const auto header = nlohmann::json::parse(content.substr(sizeof size, size));
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    const auto sizes = entry.at("shape").get<std::vector<Index>>();
    const auto offsets = entry.at("data_offsets").get<std::array<std::size_t, 2>>();
    const std::string_view bytes = data.substr(offsets[0], offsets[1] - offsets[0]);
    entries_[key] = {Shape(sizes.data(), static_cast<int>(sizes.size())), numbers(entry.at("dtype"), bytes)};
  }
}

const Entry* File::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

const Entry& File::at(const std::string& key) const {
  if (const Entry* entry = find(key)) return *entry;
  throw FileError(error_line("golden", path_ + " has no " + key));
}

std::vector<std::string> File::cases() const {
  std::set<std::string> found;
  for (const auto& [key, entry] : entries_) found.insert(key.substr(0, key.rfind('/', key.rfind('/') - 1)));
  return {found.begin(), found.end()};
}

std::vector<std::string> File::names(const std::string& case_and_role) const {
  std::vector<std::string> found;
  const std::string prefix = case_and_role + "/";
  for (auto it = entries_.lower_bound(prefix); it != entries_.end() && it->first.starts_with(prefix); ++it)
    found.push_back(it->first.substr(prefix.size()));
  return found;
}

// --- comparison

void Comparison::add(const std::string& what, std::span<const Real> got, const Entry& want) {
  for (const double value : want.values) largest_ = std::max(largest_, std::abs(value));
  distances_.push_back({what, distance(got, want.values)});
}

std::string Comparison::failures() const {
  std::string lines;
  for (const Distance& d : distances_)
    if (!(d.absolute <= kTolerance * largest_))
      lines += d.what + " is off by " + std::to_string(d.absolute / largest_) + " of the largest, " +
               std::to_string(largest_) + "\n";
  return lines;
}

// --- cases

const Entry* Case::find(const char* role, const std::string& name) const {
  const Entry* own = file_.find(key(role, name));
  return own ? own : file_.find(std::string("shared/") + role + "/" + name);
}

Tensor Case::operator[](const std::string& name) {
  const auto made = inputs_.find(name);
  if (made != inputs_.end()) return made->second;
  const Entry* entry = find("in", name);
  if (!entry) return {};
  return inputs_[name] = tape_.variable(entry->shape, entry->as());
}

Ids Case::ids(const std::string& name) const {
  const Entry* entry = find("in", name);
  if (!entry) return {};
  return tape_.ids(entry->shape, entry->as<std::int32_t>());
}

Bools Case::bools(const std::string& name) const {
  const Entry* entry = find("in", name);
  if (!entry) return {};
  const auto flags = std::make_unique<bool[]>(entry->values.size());  // std::vector<bool> has no bools to point at
  std::copy(entry->values.begin(), entry->values.end(), flags.get());
  return tape_.bools(entry->shape, std::span<const bool>(flags.get(), entry->values.size()));
}

void Case::load(const std::string& name, const Parameter& parameter) {
  const Entry* entry = find("param", name);
  if (!entry || !(entry->shape == parameter.shape))
    throw ShapeError(error_line(
        "golden", name + " is " + parameter.shape.str() + ", stored is " + (entry ? entry->shape.str() : "none")));
  std::ranges::copy(entry->values, tape_.parameters()->value(parameter).begin());
  parameters_[name] = parameter;
}

std::vector<Real> Case::gradient(const std::string& name) const {
  if (const auto input = inputs_.find(name); input != inputs_.end()) return input->second.grads();
  const auto parameter = parameters_.find(name);
  if (parameter == parameters_.end()) return {};
  const std::span<const Real> grad = tape_.parameters()->grad(parameter->second);
  return {grad.begin(), grad.end()};
}

std::string Case::check(Tensor y) {
  const Entry* up = file_.find(key("up", "y"));
  if (up && !(y.shape() == up->shape)) return "y is " + y.shape().str() + ", expected " + up->shape.str() + "\n";
  return check({{"y", y}}, up ? sum(mul(y, tape_.input(up->shape, up->as()))) : Tensor());
}

std::string Case::check(const std::map<std::string, Tensor>& results, Tensor loss) {
  Comparison values, gradients;
  std::string failures;
  for (const auto& [name, result] : results) {
    const Entry& want = file_.at(key("out", name));
    if (!(result.shape() == want.shape))
      failures += name + " is " + result.shape().str() + ", expected " + want.shape.str() + "\n";
    values.add(name, result.values(), want);
  }
  if (loss.defined()) {
    tape_.backward(loss);
    for (const std::string& name : file_.names(name_ + "/grad"))
      gradients.add("the gradient of " + name, gradient(name), file_.at(key("grad", name)));
    for (const auto& [name, parameter] : parameters_)
      if (!file_.find(key("grad", name))) failures += name + " has no reference gradient\n";
  }
  return failures + values.failures() + gradients.failures();
}

ModelConfig small_model(ModelKind kind, NormOrder order, bool tied) {
  ModelConfig config;
  config.kind = kind;
  config.width = 16;
  config.heads = 2;
  config.feed_forward = 32;
  config.context = 6;
  config.vocabulary = 11;
  config.tie_embeddings = tied;
  config.norm_order = order;
  return config;
}

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
