// Product of matrices by register tiles (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34, 2008), written with Eigen's packets so that one source serves SSE, AVX2 and AVX-512.
//
// A panel of B, kPanel columns wide and kBlock rows deep, is copied to the stack in the order in which it is read.
// Each tile holds kRows x kPanel sums in registers and reads, per step of k, one row of the panel and kRows numbers of
// A.
#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/kernels/packet.h"
#include "autograd/kernels/parallel.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

constexpr Index kPanel = 2 * kPacket;
constexpr Index kBlock = 256;
#ifdef EIGEN_VECTORIZE_AVX512
constexpr int kRows = 14;  // 28 sums, 2 packets of B and 1 number of A: 31 of 32 registers
#else
constexpr int kRows = 6;  // 12 + 2 + 1 of 16
#endif

// C[R, V packets] (+)= A[R, k] panel[k, V packets]
template <int R, int V>
void tile(Index k, ConstMatrix a, const Real* panel, Matrix c, bool accumulate) {
  Packet sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = ei::pset1<Packet>(Real{0});
  for (Index p = 0; p < k; ++p) {
    Packet b[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) b[v] = ei::pload<Packet>(panel + p * kPanel + v * kPacket);
    const Real* column = a.data + p * a.column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Packet x = ei::pset1<Packet>(column[r * a.row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] = ei::pmadd(x, b[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      Real* to = c.data + r * c.row + v * kPacket;
      ei::pstoreu(to, accumulate ? ei::padd(ei::ploadu<Packet>(to), sum[r][v]) : sum[r][v]);
    }
}

using Tile = void (*)(Index, ConstMatrix, const Real*, Matrix, bool);
template <int V, int... R>
constexpr std::array<Tile, sizeof...(R)> tiles(std::integer_sequence<int, R...>) {
  return {tile<R + 1, V>...};
}
constexpr auto kNarrow = tiles<1>(std::make_integer_sequence<int, kRows>());
constexpr auto kWide = tiles<2>(std::make_integer_sequence<int, kRows>());

// panel[p][j] = B[p, j] for `width` columns, zero beyond them.
void pack(Index k, Index width, ConstMatrix b, Real* panel) {
  if (width < kPanel) std::fill_n(panel, k * kPanel, Real{0});
  if (b.column == 1) {
    for (Index p = 0; p < k; ++p) std::copy_n(b.data + p * b.row, width, panel + p * kPanel);
    return;
  }
  Index j = 0;
  if (b.row == 1)  // B is stored transposed: turn squares of kPacket x kPacket over in registers
    for (; j + kPacket <= width; j += kPacket) {
      Index p = 0;
      for (; p + kPacket <= k; p += kPacket) {
        ei::PacketBlock<Packet, kPacket> square;
        for (Index i = 0; i < kPacket; ++i) square.packet[i] = ei::ploadu<Packet>(b.data + (j + i) * b.column + p);
        ei::ptranspose(square);
        for (Index i = 0; i < kPacket; ++i) ei::pstore(panel + (p + i) * kPanel + j, square.packet[i]);
      }
      for (; p < k; ++p)
        for (Index i = j; i < j + kPacket; ++i) panel[p * kPanel + i] = b.data[p + i * b.column];
    }
  for (; j < width; ++j)
    for (Index p = 0; p < k; ++p) panel[p * kPanel + j] = b.data[p * b.row + j * b.column];
}

// All rows of C against one panel of `width` columns; tiles differ by at most one row in height.
void rows_by_panel(Index m, Index width, Index k, ConstMatrix a, const Real* panel, Matrix c, bool accumulate) {
  const auto& table = width > kPacket ? kWide : kNarrow;
  const Index stored = width > kPacket ? kPanel : kPacket;
  const Index count = (m + kRows - 1) / kRows;
  for (Index i = 0; i < count; ++i) {
    const Index begin = m * i / count, rows = m * (i + 1) / count - begin;
    const Tile run = table[static_cast<std::size_t>(rows - 1)];
    const ConstMatrix part{a.data + begin * a.row, a.row, a.column};
    Real* to = c.data + begin * c.row;
    if (width == stored) {
      run(k, part, panel, {to, c.row}, accumulate);
      continue;
    }
    alignas(64) Real edge[kRows * kPanel];  // a panel that is not full must not write beyond C's last column
    run(k, part, panel, {edge, kPanel}, false);
    for (Index r = 0; r < rows; ++r)
      for (Index j = 0; j < width; ++j)
        to[r * c.row + j] = edge[r * kPanel + j] + (accumulate ? to[r * c.row + j] : Real{0});
  }
}

}  // namespace

void gemm(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    if (!accumulate)
      for (Index i = 0; i < m; ++i) std::fill_n(c.data + i * c.row, n, Real{0});
    return;
  }
  alignas(64) Real panel[kBlock * kPanel];
  for (Index j = 0; j < n; j += kPanel)
    for (Index p = 0; p < k; p += kBlock) {
      const Index width = std::min(kPanel, n - j), depth = std::min(kBlock, k - p);
      pack(depth, width, {b.data + p * b.row + j * b.column, b.row, b.column}, panel);
      rows_by_panel(m, width, depth, {a.data + p * a.column, a.row, a.column}, panel, {c.data + j, c.row},
                    accumulate || p > 0);
    }
}

constexpr Index kMultiplyAdds = 8;  // that take the time of one element operation

void gemm_in_pieces(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  if (m >= n)
    for_pieces(m, n * k / kMultiplyAdds, [&](Index begin, Index end, Index) {
      gemm(end - begin, n, k, {a.data + begin * a.row, a.row, a.column}, b, {c.data + begin * c.row, c.row},
           accumulate);
    });
  else
    for_pieces(n, m * k / kMultiplyAdds, [&](Index begin, Index end, Index) {
      gemm(m, end - begin, k, a, {b.data + begin * b.column, b.row, b.column}, {c.data + begin, c.row}, accumulate);
    });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
