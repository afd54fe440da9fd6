#include "autograd/kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "autograd/kernels/gemm.h"
#include "autograd/kernels/packet.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRepeats = 24;  // the best one counts: others may have waited for a core

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const Clock::time_point start = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// Independent chains, more than latency times ports (4 x 2) and fewer than registers. Operands pass through an empty
// asm statement, so that the compiler can neither fold nor drop them.
constexpr int kChains = 12;
constexpr Index kRounds = 100'000;

Real multiply_add_chains() {
  Packet chain[kChains];
  for (Packet& c : chain) c = ei::pset1<Packet>(Real(1));
  Packet factor = ei::pset1<Packet>(Real(0.999)), term = ei::pset1<Packet>(Real(0.001));
  asm volatile("" : "+x"(factor), "+x"(term));
  for (Index i = 0; i < kRounds; ++i)
#pragma GCC unroll 12
    for (Packet& c : chain) c = ei::pmadd(c, factor, term);
  for (int i = 1; i < kChains; ++i) chain[0] = ei::padd(chain[0], chain[i]);
  return ei::predux(chain[0]);
}

}  // namespace

double fma_peak(int threads) {
  const double operations = 2.0 * kChains * kRounds * kPacket * threads;
  Real sink = 0;
  const double seconds = best_seconds([&] {
    if (threads == 1) {
      sink += multiply_add_chains();
      return;
    }
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sink)
    for (int i = 0; i < threads; ++i) sink += multiply_add_chains();
  });
  asm volatile("" : : "x"(sink));
  return operations / seconds / 1e9;
}

double gemm_peak() {
  constexpr Index n = 256;
  std::vector<Real> a(n * n, Real(0.5)), b(n * n, Real(0.25)), c(n * n);
  const double seconds = best_seconds([&] { gemm(n, n, n, {a.data(), n, 1}, {b.data(), n, 1}, {c.data(), n}, false); });
  return 2.0 * n * n * n / seconds / 1e9;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
