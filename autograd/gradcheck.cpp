// The check itself: one tensor at a time is moved along random directions; a failure is narrowed down to an element.
#include "autograd/gradcheck.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "autograd/error.h"
#include "autograd/kernels/runs.h"
#include "autograd/rng.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

constexpr int kAttempts = 20;    // draws of the inputs before a kink counts as a failure
constexpr int kHalvings = 6;     // of the step
constexpr Index kScanned = 256;  // elements looked at one by one after halving the failing tensor
constexpr double kRounding = 16 * std::numeric_limits<Real>::epsilon();
constexpr Real kStart = 1;  // of every gradient, before backward

using Random = rng::Generator;

/// A tensor under test: its numbers, moved in place, and what the tape says about them.
struct Subject {
  std::string name;
  Shape shape;
  Real* value;
  std::vector<double> grad = {};
};

/// Some of a subject's elements and how they move.
struct Direction {
  Index begin, end;
  const double* d;  // d[begin] .. d[end - 1]
};

struct Slope {
  double analytic = 0, numeric = 0;
  double error = 0;
  bool settled = false;
};

class Checker {
 public:
  /// `record` makes y on the tape from the subjects' present numbers; `grad_of` says where subject i's gradient lies.
  Checker(Tape& tape, const Gradcheck& options, std::function<Tensor()> record,
          std::function<Real*(std::size_t)> grad_of)
      : tape_(tape), options_(options), record_(std::move(record)), grad_of_(std::move(grad_of)) {}

  std::vector<Subject> subjects;

  /// Tries all directions; false when differences did not settle.
  bool run(std::uint32_t attempt, GradcheckResult& result);
  std::string describe(const std::string& name, const GradcheckResult& result) const;

 private:
  void differentiate(Random& random);
  double dot(Tensor y);
  double loss_at(Subject& x, const Direction& along, double t);
  Slope slope(Subject& x, const Direction& along);
  double error(double a, double b, double h) const;
  void locate(Subject& x, Direction along, GradcheckResult& result);

  Tape& tape_;
  const Gradcheck& options_;
  std::function<Tensor()> record_;
  std::function<Real*(std::size_t)> grad_of_;
  std::vector<double> seed_;  // s
  double magnitude_ = 0;      // sum |s y|
};

double Checker::dot(Tensor y) {
  double sum = 0;
  magnitude_ = 0;
  const double* s = seed_.data();
  const Real* value = y.value();
  for_each_run(y.shape(), y.strides(), [&](Index offset, Index count, Index stride) {
    for (Index i = 0; i < count; ++i) {
      const double term = *s++ * static_cast<double>(value[offset + i * stride]);
      sum += term;
      magnitude_ += std::abs(term);
    }
  });
  return sum;
}

/// Fills every subject's grad with dL/dx, by the tape.
void Checker::differentiate(Random& random) {
  tape_.reset();
  const Tensor y = record_();
  seed_.resize(static_cast<std::size_t>(y.numel()));
  for (double& s : seed_) s = random.normal();
  Tensor loss = tape_.result("gradcheck", {}, {y});
  *loss.value() = static_cast<Real>(dot(y));
  tape_.on_backward(loss, [y, s = seed_.data()]() mutable {  // dy += s
    Real* dy = y.grad_buffer();
    for_each_run(y.shape(), y.strides(), [&](Index offset, Index count, Index stride) {
      for (Index i = 0; i < count; ++i) dy[offset + i * stride] += static_cast<Real>(*s++);
    });
  });
  for (std::size_t i = 0; i < subjects.size(); ++i) std::fill_n(grad_of_(i), subjects[i].shape.numel(), kStart);
  if (loss.requires_grad()) tape_.backward(loss);
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Real* grad = grad_of_(i);
    subjects[i].grad.assign(grad, grad + subjects[i].shape.numel());
    for (double& g : subjects[i].grad) g -= double{kStart};
  }
}

/// L with the subject moved by t d.
double Checker::loss_at(Subject& x, const Direction& along, double t) {
  struct Restore {  // also when f throws
    Real* to;
    std::vector<Real> from;
    ~Restore() { std::copy(from.begin(), from.end(), to); }
  };
  const Restore restore{x.value + along.begin, {x.value + along.begin, x.value + along.end}};
  for (Index i = along.begin; i < along.end; ++i)
    x.value[i] = static_cast<Real>(static_cast<double>(x.value[i]) + t * along.d[i]);
  tape_.reset();
  const NoGrad no_grad(tape_);
  return dot(record_());
}

double Checker::error(double a, double b, double h) const {
  if (a == b) return 0;
  const double floor = kRounding * (magnitude_ / h + kStart) / options_.tolerance;
  const double e = std::abs(a - b) / std::max({std::abs(a), std::abs(b), floor});
  return std::isfinite(e) ? e : std::numeric_limits<double>::infinity();
}

Slope Checker::slope(Subject& x, const Direction& along) {
  Slope result;
  double square = 0;
  for (Index i = 0; i < x.shape.numel(); ++i)
    square += static_cast<double>(x.value[i]) * static_cast<double>(x.value[i]);
  for (Index i = along.begin; i < along.end; ++i) result.analytic += x.grad[static_cast<std::size_t>(i)] * along.d[i];

  double h = options_.step * std::max(1.0, std::sqrt(square / static_cast<double>(x.shape.numel())));
  double outer = loss_at(x, along, 2 * h) - loss_at(x, along, -2 * h);
  for (int halving = 0; halving <= kHalvings && !result.settled; ++halving, h /= 2) {
    const double inner = loss_at(x, along, h) - loss_at(x, along, -h);
    const double n = (8 * inner - outer) / (12 * h);
    result.settled = halving > 0 && error(n, result.numeric, h) <= options_.tolerance / 10;
    result.numeric = n;
    result.error = error(result.analytic, n, h);
    outer = inner;
  }
  return result;
}

bool Checker::run(std::uint32_t attempt, GradcheckResult& result) {
  Random random(rng::Stream(options_.seed, rng::Purpose::check, attempt, 1));
  differentiate(random);
  result = {};
  for (Subject& x : subjects) {
    if (x.shape.numel() == 0) continue;
    result.tensor = x.name;
    std::vector<double> d(x.grad.size());
    for (int i = 0; i < options_.directions; ++i) {
      for (double& component : d) component = random.normal();
      const Direction along{0, x.shape.numel(), d.data()};
      const Slope s = slope(x, along);
      if (!s.settled) return false;
      result.error = std::max(result.error, s.error);
      if (s.error > options_.tolerance) return locate(x, along, result), true;
    }
  }
  result.passed = true;
  result.tensor.clear();
  return true;
}

/// Finds an element that is wrong: by halves while there are many, then the worst one of those left.
void Checker::locate(Subject& x, Direction along, GradcheckResult& result) {
  const auto wrong = [&](const Direction& part) {
    const Slope s = slope(x, part);
    return std::abs(s.analytic - s.numeric);
  };
  while (along.end - along.begin > kScanned) {
    const Index middle = along.begin + (along.end - along.begin) / 2;
    const Direction left{along.begin, middle, along.d}, right{middle, along.end, along.d};
    along = wrong(right) > wrong(left) ? right : left;
  }
  double worst = -1;
  Index flat = along.begin;
  const std::vector<double> ones(x.grad.size(), 1.0);
  for (Index i = along.begin; i < along.end; ++i) {
    const Slope s = slope(x, {i, i + 1, ones.data()});
    const double difference = std::abs(s.analytic - s.numeric);
    if (difference <= worst) continue;
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
    flat = i;
    result.analytic = s.analytic;
    result.numeric = s.numeric;
  }
  std::array<Index, kMaxRank> at{};
  for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
    at[static_cast<std::size_t>(axis)] = flat % x.shape[axis];
    flat /= x.shape[axis];
  }
  result.index = Shape(at.data(), x.shape.rank()).str();
}

std::string Checker::describe(const std::string& name, const GradcheckResult& r) const {
  if (r.index.empty())
    return error_line(name, "differences along " + r.tensor + " do not settle", {},
                      "draw inputs away from kinks and poles, or use smooth activations");
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, " is %.9g, by differences %.9g (error %.1e, allowed %.1e)", r.analytic,
                r.numeric, r.error, options_.tolerance);
  return error_line(name, "dL/dx of " + r.tensor + " at " + r.index + numbers, {},
                    "compare the backward rule with its formula");
}

/// Redraws and runs until the differences settle.
GradcheckResult check(const std::string& name, Checker& checker, const std::function<void(std::uint32_t)>& draw) {
  GradcheckResult result;
  bool settled = false;
  for (std::uint32_t attempt = 0; attempt < kAttempts && !settled; ++attempt) {
    draw(attempt);
    settled = checker.run(attempt, result);
  }
  if (!result.passed) result.message = checker.describe(name, result);
  return result;
}

}  // namespace

GradcheckResult gradcheck(const std::string& name, const GradcheckFunction& f, std::vector<GradcheckInput> inputs,
                          const Gradcheck& options) {
  Tape tape;
  std::vector<Tensor> variables(inputs.size());
  const auto record = [&] {
    for (std::size_t i = 0; i < inputs.size(); ++i) variables[i] = tape.variable(inputs[i].shape, inputs[i].values);
    return f(tape, variables);
  };
  Checker checker(tape, options, record, [&](std::size_t i) { return variables[i].grad_buffer(); });
  std::vector<bool> drawn;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    drawn.push_back(inputs[i].values.empty());
    if (drawn[i]) inputs[i].values.resize(static_cast<std::size_t>(inputs[i].shape.numel()));
    checker.subjects.push_back({"input " + std::to_string(i), inputs[i].shape, inputs[i].values.data()});
  }
  return check(name, checker, [&](std::uint32_t attempt) {
    Random random(rng::Stream(options.seed, rng::Purpose::check, attempt, 0));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (Real& value : inputs[i].values) {
        const double normal = random.normal();
        if (drawn[i]) value = static_cast<Real>(options.domain ? options.domain(i, normal) : normal);
      }
  });
}

GradcheckResult gradcheck(const std::string& name, const std::function<Tensor(Tape&)>& f, ParameterSet& parameters,
                          std::span<const std::pair<std::string, Parameter>> named, const Gradcheck& options) {
  struct Restore {
    ParameterSet& set;
    std::vector<Real> grads;
    ~Restore() { std::copy(grads.begin(), grads.end(), set.grads()); }
  };
  const Restore restore{parameters, {parameters.grads(), parameters.grads() + parameters.size()}};
  Tape tape(parameters);
  Checker checker(
      tape, options, [&] { return f(tape); }, [&](std::size_t i) { return parameters.grad(named[i].second).data(); });
  for (const auto& [parameter_name, p] : named)
    checker.subjects.push_back({parameter_name, p.shape, parameters.value(p).data()});
  return check(name, checker, [](std::uint32_t) {});
}

}  // namespace tapehead::inline TAPEHEAD_REAL
