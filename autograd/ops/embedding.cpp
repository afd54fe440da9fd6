// Rows of a table, looked up by number.
#include "autograd/ops/rows.h"

namespace tapehead::inline TAPEHEAD_REAL {

Tensor embedding(Ids ids, Tensor table) {
  Tape& tape = table.tape();
  if (table.rank() != 2) fail(tape, "embedding", "the table has shape " + table.shape().str(), "it must be [V, C]");
  table = contiguous(table);
  const Index count = ids.numel(), vocabulary = table.size(0), width = table.size(1);
  const std::int32_t* id = ids.data();
  for (Index i = 0; i < count; ++i)
    if (id[i] < 0 || id[i] >= vocabulary)
      fail(tape, "embedding",
           "id " + std::to_string(id[i]) + " at " + position(ids.shape(), i) + ", but the table has " +
               std::to_string(vocabulary) + " rows",
           "ids are 0 .. V - 1");
  Tensor y = tape.result("embedding", ids.shape().inserted(-1, width), {table});
  const Real* rows = table.value();
  Real* out = y.value();
  for (Index i = 0; i < count; ++i) std::copy_n(rows + id[i] * width, width, out + i * width);
  // dtable[id_i] += dy_i; pieces own columns, so that each sum runs in the order of the positions
  tape.on_backward(y, [=] {
    Real* dtable = table.grad_buffer();
    if (!dtable) return;
    const Real* dy = y.grad();
    for_pieces(width, count, [=](Index begin, Index end, Index) {
      for (Index i = 0; i < count; ++i) {
        Real* to = dtable + id[i] * width;
        const Real* from = dy + i * width;
        for (Index c = begin; c < end; ++c) to[c] += from[c];
      }
    });
  });
  return y;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
