// What this machine can do at most, measured: the yardstick for every other speed.
#pragma once

#include "autograd/real.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Fused multiply-adds of full vector registers, without memory: 1e9 operations a second (two each), by `threads`
/// threads together. Takes about 0.1 s.
double fma_peak(int threads);
/// The same for gemm() of two square matrices that stay in cache, on one thread.
double gemm_peak();

}  // namespace tapehead::inline TAPEHEAD_REAL
