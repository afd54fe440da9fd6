// The number type of a build of the library.
//
// The engine, the modules and the trainer are compiled twice, as tapehead::f32 (float) and tapehead::f64
// (double), and both can be linked into one program. A translation unit sees one of them: f32, or f64 when
// it is compiled with -DTAPEHEAD_REAL=f64. The namespace is inline, so code says tapehead::Tensor either way.
#pragma once

#ifndef TAPEHEAD_REAL
#define TAPEHEAD_REAL f32
#endif

#ifdef __FAST_MATH__
#error "tapehead: -ffast-math makes NaN checks constant and masks undefined. Hint: remove it from the compiler flags."
#endif

namespace tapehead {
namespace precision {
using f32 = float;
using f64 = double;
}  // namespace precision

inline namespace TAPEHEAD_REAL {
using Real = precision::TAPEHEAD_REAL;
}
}  // namespace tapehead
