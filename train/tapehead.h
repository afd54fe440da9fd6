// All of Tapehead's public interface; installed as <tapehead/tapehead.h>.
#pragma once

#include "autograd/attention.h"
#include "autograd/error.h"
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/rng.h"
#include "autograd/tape.h"
