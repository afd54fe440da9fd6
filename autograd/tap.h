// Where a model can be looked into and changed while it runs: values that modules name by Tape::tap().
#pragma once

#include <string_view>

#include "autograd/tensor.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Sees what passes Tape::tap() under a name, and gives back x or something else of its shape. One observer may serve
/// the tapes of several threads at once.
class TapObserver {
 public:
  virtual ~TapObserver() = default;
  virtual Tensor tap(std::string_view name, Tensor x) const = 0;
};

}  // namespace tapehead::inline TAPEHEAD_REAL
