#!/bin/sh
# The checks of .ci/lint themselves: a tree that keeps the rules passes, and one with a single planted fault fails and
# names the file. Usage: tests/lint_test.sh, from the project's root.
set -eu
lint=$PWD/.ci/lint
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

plant() {  # FILE LINE...
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$tree/$1"
}
clean() {
  rm -rf "${tree:?}"/*
  plant autograd/tape.h '#include "autograd/shape.h"'
  plant nn/linear.h '#include "autograd/tape.h"'
  plant data/copy.cpp '#include "autograd/rng.h"'
  plant train/trainer.h '#include "nn/linear.h"'
  plant train/archive.h '#include <cereal/cereal.hpp>'
  plant train/tapehead.h '#include "train/trainer.h"'
  plant tools/train.cpp '#include "train/trainer.h"'
}
expect_pass() {
  "$lint" "$tree" >"$tree/out" 2>&1 || { echo "FAILED: a clean tree is refused:"; cat "$tree/out"; exit 1; }
}
expect_fault() {  # FILE TEXT MESSAGE
  clean
  plant "$1" "$2"
  if "$lint" "$tree" >/dev/null 2>"$tree/out"; then echo "FAILED: no complaint about $1: $2"; exit 1; fi
  grep -q "$3" "$tree/out" || { echo "FAILED: '$3' is not in the complaint:"; cat "$tree/out"; exit 1; }
  [ "$(wc -l <"$tree/out")" -eq 1 ] || { echo "FAILED: more than one line:"; cat "$tree/out"; exit 1; }
}

clean
expect_pass
expect_fault autograd/add.h '#include "nn/linear.h"' 'autograd/add.h:1: \[layers\] autograd/ includes nn/linear.h'
expect_fault nn/linear.h '#include "train/trainer.h"' 'nn/linear.h:1'
expect_fault nn/linear.h '#include "data/task.h"' 'nn/linear.h:1'
expect_fault nn/linear.h '  #  include <tapehead/tapehead.h>' 'nn/linear.h:1'
expect_fault data/copy.h '#include "autograd/tape.h"' 'data/copy.h:1'
expect_fault train/trainer.h '#include "tools/verbs.h"' 'train/trainer.h:1'
expect_fault autograd/tape.h '#include <Eigen/Core>' 'autograd/tape.h:1: \[headers\]'
expect_fault examples/07_long.cpp "$(awk 'BEGIN { for (i = 0; i < 120; ++i) print "int i;" }')" '07_long.cpp: .lines. 120 lines'
expect_fault autograd/tape.cpp "$(awk 'BEGIN { for (i = 0; i < 700; ++i) print "int i;" }')" '701 lines of code, limit 700'
