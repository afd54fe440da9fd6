// Product of matrices by register tiles (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34, 2008), written with Eigen's packets so that one source serves SSE, AVX2 and AVX-512.
//
// A panel of B, kPanel columns wide and kBlock rows deep, is copied to the stack in the order in which it is read.
// Each tile holds kRows x kPanel sums in registers and reads, per step of k, one row of the panel and kRows numbers of
// A.
#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
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

// to[p][j] = from[p, j] for p < k and j < kPacket, where rows of `from` are columns in memory, `step` apart: squares
// are turned over in registers.
void pack_transposed(Index k, const Real* from, Index step, Real* to) {
  Index p = 0;
  for (; p + kPacket <= k; p += kPacket) {
    ei::PacketBlock<Packet, kPacket> square;
#pragma GCC unroll 16
    for (Index j = 0; j < kPacket; ++j) square.packet[j] = ei::ploadu<Packet>(from + j * step + p);
    ei::ptranspose(square);
#pragma GCC unroll 16
    for (Index i = 0; i < kPacket; ++i) ei::pstore(to + (p + i) * kPanel, square.packet[i]);
  }
  for (; p < k; ++p)
    for (Index j = 0; j < kPacket; ++j) to[p * kPanel + j] = from[j * step + p];
}

// panel[p][j] = B[p, j] for `width` columns, zero beyond them up to a whole packet.
void pack(Index k, Index width, ConstMatrix b, Real* panel) {
  Index j = 0;
  for (; j + kPacket <= width; j += kPacket) {
    const Real* from = b.data + j * b.column;
    if (b.column == 1)
      for (Index p = 0; p < k; ++p) ei::pstore(panel + p * kPanel + j, ei::ploadu<Packet>(from + p * b.row));
    else if (b.row == 1)
      pack_transposed(k, from, b.column, panel + j);
    else
      for (Index p = 0; p < k; ++p)
        for (Index i = 0; i < kPacket; ++i) panel[p * kPanel + j + i] = from[p * b.row + i * b.column];
  }
  if (j == width) return;
  for (Index p = 0; p < k; ++p) {
    ei::pstore(panel + p * kPanel + j, ei::pset1<Packet>(Real{0}));
    for (Index i = j; i < width; ++i) panel[p * kPanel + i] = b.data[p * b.row + i * b.column];
  }
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

// A copy of A's rows, kDepth numbers apart, or of its columns when these are what lies together: neighbours that are a
// power of two apart in memory share few sets of the first cache and push each other out of it.
constexpr Index kDepth = kBlock + 16, kChunk = Index{18} * kRows, kColumn = kChunk + 16;
struct RoomForA {
  alignas(64) Real numbers[std::max(kChunk * kDepth, kBlock* kColumn)];
};

void copy_rows(Index count, Index length, const Real* from, Index step, Real* to, Index to_step) {
  for (Index i = 0; i < count; ++i, from += step, to += to_step) {
    Index j = 0;
    for (; j + kPacket <= length; j += kPacket) ei::pstore(to + j, ei::ploadu<Packet>(from + j));
    for (; j < length; ++j) to[j] = from[j];
  }
}

ConstMatrix pack_rows(Index m, Index k, ConstMatrix a, Real* room) {
  if (a.column == 1) {
    copy_rows(m, k, a.data, a.row, room, kDepth);
    return {room, kDepth, 1};
  }
  copy_rows(k, m, a.data, a.column, room, kColumn);
  return {room, 1, kColumn};
}

// Rows of C that A's `m` rows make, over a depth of k <= kBlock.
void chunk(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  alignas(64) Real panel[kBlock * kPanel];
  for (Index j = 0; j < n; j += kPanel) {
    const Index width = std::min(kPanel, n - j);
    pack(k, width, {b.data + j * b.column, b.row, b.column}, panel);
    rows_by_panel(m, width, k, a, panel, {c.data + j, c.row}, accumulate);
  }
}

void chunk_packed(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  RoomForA room;
  chunk(m, n, k, pack_rows(m, k, a, room.numbers), b, c, accumulate);
}

// Whether a copy of A pays: it is read once for each panel of B, and once more to copy it. Rows a whole number of pages
// apart, or columns of more rows than the second cache holds: 0.8 to 0.95 of the peak in dW of 2,048 tokens at width
// 384, 0.4 to 0.9 in that of a head of 50,257 classes. Smaller ones lose 3 % by it.
bool pays_to_pack(Index m, Index n, ConstMatrix a) {
  if (n <= kPanel || m < kRows) return false;
  constexpr Index kPage = 1024;
  if (a.column == 1) return a.row % kPage == 0;
  return a.row == 1 && ((m > 2 * kChunk && n > 2 * kPanel) || a.column % kPage == 0);
}

// R rows of A with C columns of B, both along k in memory: R x C dot products.
template <int R, int C>
void dots(Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  Packet sum[R][C];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) sum[r][j] = ei::pset1<Packet>(Real{0});
  Index p = 0;
  for (; p + kPacket <= k; p += kPacket) {
    Packet x[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) x[r] = ei::ploadu<Packet>(a.data + r * a.row + p);
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      const Packet y = ei::ploadu<Packet>(b.data + j * b.column + p);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[r][j] = ei::pmadd(x[r], y, sum[r][j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) {
      Real total = ei::predux(sum[r][j]);
      for (Index i = p; i < k; ++i) total += a.data[r * a.row + i] * b.data[j * b.column + i];
      Real* to = c.data + r * c.row + j;
      *to = accumulate ? *to + total : total;
    }
}

template <int R>
void rows_of_dots(Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  constexpr int kColumns = R > 2 ? 2 : 4;
  Index j = 0;
  const auto columns = [&](Index at) { return ConstMatrix{b.data + at * b.column, b.row, b.column}; };
  for (; j + kColumns <= n; j += kColumns) dots<R, kColumns>(k, a, columns(j), {c.data + j, c.row}, accumulate);
  for (; j < n; ++j) dots<R, 1>(k, a, columns(j), {c.data + j, c.row}, accumulate);
}

// A few rows use no number of B often enough to pay for its copy: the weights [out, in] while a model generates.
constexpr Index kFewRows = 4;
bool are_few_rows(Index m, Index n, ConstMatrix a, ConstMatrix b) {
  return m <= kFewRows && n > m && a.column == 1 && b.row == 1;
}

void few_rows(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  constexpr decltype(&rows_of_dots<1>) kOf[kFewRows] = {rows_of_dots<1>, rows_of_dots<2>, rows_of_dots<3>,
                                                        rows_of_dots<4>};
  kOf[m - 1](n, k, a, b, c, accumulate);
}

void many_rows(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  const bool packs = pays_to_pack(m, n, a);
  const auto run = packs ? chunk_packed : chunk;
  const Index chunks = packs ? (m + kChunk - 1) / kChunk : 1;
  for (Index i = 0; i < chunks; ++i) {
    const Index begin = m * i / chunks, rows = m * (i + 1) / chunks - begin;
    for (Index p = 0; p < k; p += kBlock)
      run(rows, n, std::min(kBlock, k - p), {a.data + begin * a.row + p * a.column, a.row, a.column},
          {b.data + p * b.row, b.row, b.column}, {c.data + begin * c.row, c.row}, accumulate || p > 0);
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
  (are_few_rows(m, n, a, b) ? few_rows : many_rows)(m, n, k, a, b, c, accumulate);
}

// As no cut changes a bit, here and only here the number of threads decides: every piece packs the other operand again.
// What the whole is decides how its pieces are made: few rows sum in another order.
void gemm_in_pieces(Index m, Index n, Index k, ConstMatrix a, ConstMatrix b, Matrix c, bool accumulate) {
  constexpr Index kMultiplyAdds = 8;  // that take the time of one element operation
  const Index threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  const Index pieces = std::min(threads, piece_count(std::max(m, n), std::min(m, n) * k / kMultiplyAdds));
  if (pieces <= 1 || k <= 0) return gemm(m, n, k, a, b, c, accumulate);
  const auto make = are_few_rows(m, n, a, b) ? few_rows : many_rows;
  const auto piece = [&](Index i) {
    if (m >= n) {
      const Index begin = m * i / pieces, end = m * (i + 1) / pieces;
      make(end - begin, n, k, {a.data + begin * a.row, a.row, a.column}, b, {c.data + begin * c.row, c.row},
           accumulate);
    } else {
      const Index begin = n * i / pieces, end = n * (i + 1) / pieces;
      make(m, end - begin, k, a, {b.data + begin * b.column, b.row, b.column}, {c.data + begin, c.row}, accumulate);
    }
  };
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < pieces; ++i) piece(i);
}

}  // namespace tapehead::inline TAPEHEAD_REAL
