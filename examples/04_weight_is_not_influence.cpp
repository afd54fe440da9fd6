// Lesson 4: a large weight on a value that says nothing.
//
// One query looks almost only at the first source. But that source's value is next to nothing, so what comes out, and
// what the loss feels, is decided by the second. A heatmap of weights alone would tell the wrong story: look at the
// length of what is mixed in (Kobayashi et al. 2020) and at weight x gradient, too.
#include <tapehead/tapehead.h>

#include <cmath>
#include <cstdio>

using namespace tapehead;

int main() {
  Tape tape;
  const Tensor q = tape.input({1, 2}, {2, 0});
  const Tensor k = tape.input({3, 2}, {2, 0, 0.5, 0, 0, 1});
  const Tensor v = tape.variable({3, 2}, {0.01, 0, 3, -2, 0.2, 0.1});
  Attention options;
  options.keep_weights = true;
  const Tensor z = attention(q, k, v, options).keep_grad();  // [1, 2]
  const Tensor wanted = tape.input({1, 2}, {1, -1});
  tape.backward(mse(z, wanted));

  const std::vector<Real> weights = tape.find("attention.weights")[0].values(), values = v.values(), dz = z.grads();
  std::printf("source  weight  weight x |value|  weight x dL/dweight\n");
  for (std::size_t s = 0; s < 3; ++s) {
    const double w = weights[s], x = values[2 * s], y = values[2 * s + 1];
    // z = sum of weight x value, so dL/dweight = dL/dz . value
    const double gradient = double{dz[0]} * x + double{dz[1]} * y;
    std::printf("%6zu  %6.4f  %16.4f  %19.4f\n", s, w, w * std::hypot(x, y), w * gradient);
  }
  std::printf("The query looks at source 0; the loss hangs on source 1.\n");
}
