// Lesson 2: one query by hand, then the same in one call.
//
// Where do the weights come from? A query is compared with every key; softmax turns the scores into weights. The
// middle key scores 0 and still gets a fifth of the weight: the smallest score is not a weight of zero.
#include <cmath>
#include <cstdio>

#include "autograd/attention.h"

using namespace tapehead;

namespace {
void print(const char* name, Tensor x) {
  std::printf("%-8s = [", name);
  const char* separator = "";
  for (Real v : x.values()) {
    std::printf("%s%.4f", separator, double{v});
    separator = ", ";
  }
  std::printf("]\n");
}
}  // namespace

int main() {
  Tape tape;
  const Tensor q = tape.input({1, 2}, {1, 0});              // [T, D]
  const Tensor k = tape.input({3, 2}, {1, 0, 0, 1, 1, 1});  // [S, D]
  const Tensor v = tape.input({3, 2}, {1, 0, 0, 2, 2, 1});  // [S, Dv]

  std::puts("step by step");
  const Tensor dots = matmul(q, transpose(k));  // [T, S]
  print("q . k", dots);
  const Tensor scores = scale(dots, 1 / std::sqrt(Real(2)));  // keeps the variance of scores at one, whatever D
  print("scores", scores);
  const Tensor weights = softmax(scores);
  print("weights", weights);
  print("output", matmul(weights, v));

  std::puts("in one call");
  Attention options;
  options.keep_weights = true;
  const Tensor output = attention(q, k, v, options);
  print("weights", tape.find("attention.weights").back());
  print("output", output);

  std::puts("colder: the largest scores win more");
  options.temperature = 0.25f;
  attention(q, k, v, options);
  print("weights", tape.find("attention.weights").back());

  std::puts("the third source masked: its weight is exactly zero at any temperature");
  const bool allowed[] = {true, true, false};
  options.mask = Mask::allow(tape.bools({3}, allowed));
  attention(q, k, v, options);
  print("weights", tape.find("attention.weights").back());
}
