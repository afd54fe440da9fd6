// Eigen's packets: one vector register of Real, on SSE, AVX2 or AVX-512 as the compiler flags say.
#pragma once

// Eigen's packets carry alignment attributes that template arguments drop, and g++ 12 takes the intrinsics'
// "undefined" registers for uninitialised variables: both warnings are about the headers, not about our code.
#pragma GCC diagnostic ignored "-Wignored-attributes"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <Eigen/Core>

#include "autograd/real.h"
#include "autograd/shape.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace ei = Eigen::internal;
using Packet = ei::packet_traits<Real>::type;
constexpr Index kPacket = ei::unpacket_traits<Packet>::size;  // numbers in a register

}  // namespace tapehead::inline TAPEHEAD_REAL
