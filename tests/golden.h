// Reference numbers made with PyTorch in double precision (tests/golden/make_golden.py) and the comparison with ours:
// max|a - b| is at most 1e-10 (double) or 1e-5 (float) of the largest reference value of the case, and the same for
// its gradients. Both functions that compare return what is wrong, a line a tensor, so that a test can test them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "nn/config.h"
#include "nn/module.h"

namespace tapehead::inline TAPEHEAD_REAL::golden {

constexpr double kTolerance = sizeof(Real) == sizeof(double) ? 1e-10 : 1e-5;

struct Entry {
  Shape shape;
  std::vector<double> values;  // of whatever type; double holds them all

  template <class T = Real>
  std::vector<T> as() const {
    return {values.begin(), values.end()};
  }
};

/// tests/golden/NAME.safetensors: entries by key CASE/ROLE/NAME; roles are in, param, up, out and grad.
class File {
 public:
  explicit File(const std::string& name);
  /// Throws FileError when there is none.
  const Entry& at(const std::string& key) const;
  const Entry* find(const std::string& key) const;
  /// Every CASE, and every NAME under "CASE/ROLE".
  std::vector<std::string> cases() const;
  std::vector<std::string> names(const std::string& case_and_role) const;

 private:
  std::string path_;
  std::map<std::string, Entry> entries_;
};

/// Tensors that share one measure: the largest of all their reference numbers.
class Comparison {
 public:
  void add(const std::string& what, std::span<const Real> got, const Entry& want);
  /// A line for each tensor that is too far off, or has another size, or holds a NaN.
  std::string failures() const;

 private:
  struct Distance {
    std::string what;
    double absolute;
  };
  std::vector<Distance> distances_;
  double largest_ = 0;
};

/// The inputs of one case on a tape, each made once, and the check of what was computed from them.
class Case {
 public:
  Case(const File& file, std::string name, Tape& tape) : file_(file), tape_(tape), name_(std::move(name)) {}
  /// An input as a variable; the empty handle when the case has none of this name.
  Tensor operator[](const std::string& name);
  Ids ids(const std::string& name) const;
  Bools bools(const std::string& name) const;
  /// Puts the stored numbers into all parameters of a module; their gradients are then checked like an input's.
  template <class M>
  const M& load(const M& module) {
    for_each_parameter(module, [&](const std::string& name, const Parameter& p) { load(name, p); });
    return module;
  }
  /// Compares y, walks back from the stored dL/dy and compares every stored gradient. Returns what is wrong.
  std::string check(Tensor y);
  /// The same for several results, walking back from `loss`, or not at all when it is empty.
  std::string check(const std::map<std::string, Tensor>& results, Tensor loss);

 private:
  std::string key(const char* role, const std::string& name) const { return name_ + "/" + role + "/" + name; }
  void load(const std::string& name, const Parameter& parameter);
  const Entry* find(const char* role, const std::string& name) const;  // of this case or of "shared"
  std::vector<Real> gradient(const std::string& name) const;

  const File& file_;
  Tape& tape_;
  std::string name_;
  std::map<std::string, Tensor> inputs_;
  std::map<std::string, Parameter> parameters_;
};

/// The small models of tests/golden/models.py.
ModelConfig small_model(ModelKind kind, NormOrder order, bool tied);

}  // namespace tapehead::inline TAPEHEAD_REAL::golden
