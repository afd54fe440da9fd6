#include "train/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "autograd/error.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

StoredTensor store(const std::string& name, const Shape& shape, const Real* values) {
  StoredTensor t;
  t.name = name;
  for (int i = 0; i < shape.rank(); ++i) t.shape.push_back(shape[i]);
  t.bytes.resize(static_cast<std::size_t>(shape.numel()) * sizeof(Real));
  std::memcpy(t.bytes.data(), values, t.bytes.size());
  return t;
}

// Numbers of `width` bytes each to ours.
void read(const StoredTensor& t, std::size_t width, Real* to) {
  const std::size_t count = t.bytes.size() / width;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* at = t.bytes.data() + i * width;
    if (width == sizeof(float)) {
      float x;
      std::memcpy(&x, at, sizeof x);
      to[i] = static_cast<Real>(x);
    } else {
      double x;
      std::memcpy(&x, at, sizeof x);
      to[i] = static_cast<Real>(x);
    }
  }
}

// Fills the numbers of `parameters`, each at its offset of `to`, from tensors of the same names (after `prefix`).
void fill(const std::vector<NamedParameter>& parameters, const std::string& prefix,
          const std::vector<StoredTensor>& stored, std::size_t width, Real* to, const std::string& path) {
  std::vector<NamedShape> expected;
  for (const NamedParameter& p : parameters) {
    expected.push_back({prefix + p.name, {}});
    for (int i = 0; i < p.parameter.shape.rank(); ++i) expected.back().shape.push_back(p.parameter.shape[i]);
  }
  if (const std::string problems = differences(expected, stored); !problems.empty())
    throw FileError(error_line("checkpoint", path + " does not fit this model: " + problems));
  for (const NamedParameter& p : parameters)
    read(*std::ranges::find(stored, prefix + p.name, &StoredTensor::name), width, to + p.parameter.offset);
}

}  // namespace

CheckpointFile store_model(const Config& config, const std::vector<std::string>& vocabulary, const Model& model) {
  CheckpointFile file;
  file.config = config;
  file.config.model.vocabulary = model.config.vocabulary;
  file.vocabulary = vocabulary;
  file.width = sizeof(Real);
  for (const NamedParameter& p : unique_parameters(model.net))
    file.parameters.push_back(store(p.name, p.parameter.shape, model.parameters.value(p.parameter).data()));
  return file;
}

Model load_model(const CheckpointFile& file, const ModelConfig& config, const std::string& path) {
  Model model(config, file.config.seed);
  fill(unique_parameters(model.net), "", file.parameters, file.width, model.parameters.values(), path);
  return model;
}

namespace {
const std::string kFirstMoment = "adamw.m.", kSecondMoment = "adamw.v.";
}

std::vector<StoredTensor> store_moments(const Model& model, AdamW& optimizer) {
  std::vector<StoredTensor> stored;
  for (const auto& [prefix, numbers] :
       {std::pair(&kFirstMoment, &optimizer.m()), std::pair(&kSecondMoment, &optimizer.v())})
    for (const NamedParameter& p : unique_parameters(model.net))
      stored.push_back(store(*prefix + p.name, p.parameter.shape, numbers->data() + p.parameter.offset));
  return stored;
}

void load_moments(const std::vector<StoredTensor>& stored, const Model& model, AdamW& optimizer,
                  const std::string& path) {
  const std::vector<NamedParameter> parameters = unique_parameters(model.net);
  const auto split =
      std::ranges::partition_point(stored, [](const StoredTensor& t) { return t.name.starts_with(kFirstMoment); });
  fill(parameters, kFirstMoment, {stored.begin(), split}, sizeof(Real), optimizer.m().data(), path);
  fill(parameters, kSecondMoment, {split, stored.end()}, sizeof(Real), optimizer.v().data(), path);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
