// Time of every op, forward alone and with backward, on tensors of the size of a small model's activations:
// 768 tokens of 128 channels. Counters: bytes read and written once, and floating-point operations where they are many.
#include <benchmark/benchmark.h>

#include "autograd/attention.h"
#include "nn/init.h"

namespace tapehead {
namespace {

constexpr Index kTokens = 768, kWidth = 128, kHeads = 4, kLength = 64, kClasses = 65;

// Operands as parameters, so that making them costs nothing.
struct Operands {
  ParameterSet set;
  Parameter x, y, wide, weight, gain, bias, table, logits, heads;
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(kTokens);
  Tape tape{set};

  Operands() {
    Initialiser init(set, 1);
    x = init.normal({kTokens, kWidth}, 1);
    y = init.normal({kTokens, kWidth}, 1);
    wide = init.normal({kTokens, 4 * kWidth}, 1);
    weight = init.normal({4 * kWidth, kWidth}, 0.1);
    gain = init.normal({kWidth}, 1);
    bias = init.normal({4 * kWidth}, 1);
    table = init.normal({kClasses, kWidth}, 1);
    logits = init.normal({kTokens, kClasses}, 1);
    heads = init.normal({kTokens / kLength, kHeads, kLength, kWidth / kHeads}, 1);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % kClasses);
  }
  Tensor operator()(const Parameter& p) { return tape.param(p); }
  Ids tokens() { return tape.ids({kTokens}, ids); }
};

struct Case {
  const char* name;
  Tensor (*run)(Operands&);
  double flop = 0;  // of the forward pass
};

const Case kCases[] = {
    {"add", [](Operands& o) { return add(o(o.x), o(o.y)); }},
    {"add, broadcast", [](Operands& o) { return add(o(o.x), o(o.gain)); }},
    {"mul", [](Operands& o) { return mul(o(o.x), o(o.y)); }},
    {"div", [](Operands& o) { return div(o(o.x), o(o.y)); }},
    {"exp", [](Operands& o) { return exp(o(o.x)); }},
    {"tanh", [](Operands& o) { return tanh(o(o.x)); }},
    {"sigmoid", [](Operands& o) { return sigmoid(o(o.x)); }},
    {"relu", [](Operands& o) { return relu(o(o.wide)); }},
    {"gelu, exact", [](Operands& o) { return gelu(o(o.wide)); }},
    {"gelu, tanh", [](Operands& o) { return gelu(o(o.wide), Gelu::tanh); }},
    {"silu", [](Operands& o) { return silu(o(o.wide)); }},
    {"softmax", [](Operands& o) { return softmax(o(o.logits)); }},
    {"log_softmax", [](Operands& o) { return log_softmax(o(o.logits)); }},
    {"sum of rows", [](Operands& o) { return sum(o(o.x), -1); }},
    {"logsumexp", [](Operands& o) { return logsumexp(o(o.logits), -1); }},
    {"transpose, copied", [](Operands& o) { return contiguous(transpose(o(o.x))); }},
    {"layer_norm", [](Operands& o) { return layer_norm(o(o.x), o(o.gain), {}); }},
    {"rms_norm", [](Operands& o) { return rms_norm(o(o.x), o(o.gain)); }},
    {"embedding", [](Operands& o) { return embedding(o.tokens(), o(o.table)); }},
    {"cross_entropy", [](Operands& o) { return cross_entropy(o(o.logits), o.tokens()); }},
    {"linear", [](Operands& o) { return linear(o(o.x), o(o.weight), o(o.bias)); }, 8.0 * kTokens* kWidth* kWidth},
    {"matmul", [](Operands& o) { return matmul(o(o.wide), o(o.weight)); }, 8.0 * kTokens* kWidth* kWidth},
    {"attention", [](Operands& o) { return attention(o(o.heads), o(o.heads), o(o.heads)); },
     4.0 * kTokens* kLength* kWidth},
};

void run(benchmark::State& state, const Case& c, bool backward) {
  Operands operands;
  Tape& tape = operands.tape;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    tape.reset();
    const Tensor y = c.run(operands);
    if (backward) tape.backward(y.rank() ? sum(y) : y);
    benchmark::DoNotOptimize(y.value());
  }
  state.counters["bytes"] = static_cast<double>(tape.arena().used());
  if (c.flop > 0)
    state.counters["FLOP/s"] =
        benchmark::Counter(c.flop * (backward ? 3 : 1), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace tapehead

int main(int argc, char** argv) {
  using namespace tapehead;
  for (const Case& c : kCases)
    for (const bool backward : {false, true})
      benchmark::RegisterBenchmark((std::string(c.name) + (backward ? ", and back" : "")).c_str(),
                                   [&c, backward](benchmark::State& state) { run(state, c, backward); })
          ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
