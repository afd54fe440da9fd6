// Compiled for double: gradients of the op alone, then of module and loss over every parameter.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cubic.h"

bool check_gradients() {
  using namespace tapehead;
  const auto op = [](Tape&, std::span<const Tensor> x) { return cube(x[0]); };
  const GradcheckResult of_op = gradcheck("cube", op, {{{2, 3}, {0.5, -1.2, 0.3, 2.0, -0.7, 1.1}}});

  ParameterSet set;
  const Cubic model(set, 2, 1);
  std::ranges::copy(std::vector<double>{0.4, -0.9}, set.value(model.weight).begin());
  std::vector<std::pair<std::string, Parameter>> names;
  auto collect = [&](const char* name, const Parameter& p) { names.emplace_back(name, p); };
  model.visit(collect);
  const auto loss = [&](Tape& tape) {
    return mse(model(tape.input({2, 2}, {0.5, -1.2, 0.3, 2.0})), tape.input({2, 1}, {0.1, -0.4}));
  };
  const GradcheckResult of_model = gradcheck("cubic", loss, set, names);

  std::printf("gradcheck: op %.1e, model %.1e\n%s%s", of_op.error, of_model.error, of_op.message.c_str(),
              of_model.message.c_str());
  return of_op.passed && of_model.passed;
}
