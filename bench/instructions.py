#!/usr/bin/env python3
"""Instructions of one step of W0 and W1, counted by valgrind: a guard against slower code that no noise can fool.

The AVX2 build on one thread, with the product kernel made of Eigen's packets. Figures hold for one compiler and one
Eigen: with others they are printed, not compared. --record writes them; do that only on purpose, and say why in the
commit.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench/instructions.json"
COMMAND = ROOT / "build/v3/tapehead"
TOLERANCE = 0.03
STEP = "tapehead::f32::Learner::step(tapehead::Batch const&)"
STEPS = {"W0": 4, "W1": 1}  # valgrind computes a multiply-add in some 50 ns: a step of W1 takes it ten seconds


def per_step(workload):
    """Within the function that makes a step, of which the rest of the program is no part."""
    steps = STEPS[workload]
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", f"--toggle-collect={STEP}",
             str(COMMAND), "bench", workload, "--threads", "1", "--no-peak", "--steps", str(steps)],
            capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", out.stderr).group(1)) / steps


def versions():
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    macros = pathlib.Path("/usr/include/eigen3/Eigen/src/Core/util/Macros.h").read_text()
    eigen = ".".join(re.search(rf"#define EIGEN_{part}_VERSION (\d+)", macros).group(1)
                     for part in ("WORLD", "MAJOR", "MINOR"))
    return {"compiler": compiler, "eigen": eigen}


def main():
    counts = {name: round(per_step(name)) for name in STEPS}
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(versions() | {"instructions": counts}, indent=2) + "\n")
    if not RECORD.exists():
        print("nothing is recorded yet:", counts, "Hint: --record")
        return 0
    recorded = json.loads(RECORD.read_text())
    same = all(recorded[key] == value for key, value in versions().items())
    failed = 0
    for name, count in counts.items():
        change = count / recorded["instructions"][name] - 1
        bad = same and abs(change) > TOLERANCE
        failed += bad
        print(f"{name}: {count:,} instructions a step, {100 * change:+.1f} % of the record"
              + (" FAILED: beyond 3 %. Hint: find out why, or record it on purpose with --record" if bad else ""))
    if not same:
        print("not compared: another compiler or Eigen than", recorded["compiler"], "and", recorded["eigen"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
