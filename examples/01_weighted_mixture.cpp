// Lesson 1: attention ends in a weighted mixture of value vectors.
//
// Three positions offer values. With weights a that sum to one, the output a V lies between them: it is a new mixture,
// not a copy of one of them. The tape also tells how the output changes with each weight and value.
#include <cstdio>

#include "autograd/ops.h"

using namespace tapehead;

int main() {
  Tape tape;
  const Tensor weights = tape.variable({1, 3}, {0.2f, 0.3f, 0.5f});
  const Tensor values = tape.variable({3, 2}, {1, 0, 0, 2, 2, 1});  // one row a position

  const Tensor output = matmul(weights, values);  // [1, 2]
  std::printf("output = 0.2 [1, 0] + 0.3 [0, 2] + 0.5 [2, 1] = [%.1f, %.1f]\n", double{output.values()[0]},
              double{output.values()[1]});

  // Ask how the first feature of the output depends on everything that made it.
  tape.backward(sum(slice(output, -1, 0, 1)));
  const auto by_weight = weights.grads(), by_value = values.grads();
  std::printf("d output[0] / d weights = [%.0f, %.0f, %.0f]: the first feature of each value\n", double{by_weight[0]},
              double{by_weight[1]}, double{by_weight[2]});
  std::printf("d output[0] / d values[., 0] = [%.1f, %.1f, %.1f]: the weights\n", double{by_value[0]},
              double{by_value[2]}, double{by_value[4]});
}
