#!/usr/bin/env python3
"""Tokens that a model says, one after another with kept keys and values, ours and PyTorch's: `./dev bench decoding`.

Greedy, one sequence, 8 tokens given and 56 said; the same weights, and the tokens must agree. A round decodes for about
a second; PyTorch is the better of eager and compiled.
"""
import argparse
import statistics
import sys
import tempfile

from page import COMMAND, Peer, last_line, spread, table, versions, write_section

SEQUENCES = {"W2": 40, "W5": 2}  # decoded in a round


def ours(workload, threads, *more):
    return last_line([str(COMMAND), "bench", workload, "--decode", "--threads", str(threads), "--json", *more])


def check_tokens(ours_said, peers):
    """Stops when PyTorch says other tokens; returns the peers that can run."""
    able = []
    for peer in peers:
        result = peer.run(1)
        if result is None:
            print(f"PyTorch cannot run {peer.name} here", file=sys.stderr)
            continue
        if result["tokens"] != ours_said:
            sys.exit(f"bench: {peer.name} says {result['tokens']}, ours {ours_said}")
        able.append(peer)
    return able


def measure(workload, threads, rounds, python):
    sequences = SEQUENCES[workload]
    with tempfile.TemporaryDirectory() as folder:
        dump = f"{folder}/dump.safetensors"
        said = ours(workload, threads, "--steps", "1", "--dump", dump)["tokens"]
        peers = [Peer(python, "decoding.py", dump, threads, mode) for mode in ("eager", "compile")] if python else []
        able = check_tokens(said, peers)
        times = {name: [] for name in ["ours", *(p.name for p in able)]}
        for _ in range(rounds):
            times["ours"].append(ours(workload, threads, "--steps", str(sequences))["ms_token"])
            for peer in able:
                times[peer.name].append(peer.run(sequences)["ms_token"])
        for peer in peers:
            peer.close()
    best = min((p.name for p in able), key=lambda name: statistics.median(times[name]), default=None)
    row = [workload, threads, f"{1e3 / statistics.median(times['ours']):.0f}", spread(times["ours"])]
    if best:
        ratios = [a / b for a, b in zip(times["ours"], times[best])]
        row += [f"{1e3 / statistics.median(times[best]):.0f}", f"{best} {spread(times[best])}",
                f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"]
    else:
        row += ["-", "-", "-"]
    print(" | ".join(str(cell) for cell in row), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(prog="./dev bench decoding", description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", metavar="W2|W5", help="which ones (default: both)")
    parser.add_argument("--threads", type=int, action="append", help="may be repeated (default: 1, 2)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", help="a Python with PyTorch; without it, only ours runs")
    options = parser.parse_args()
    for name in options.workloads:
        if name not in SEQUENCES:
            parser.error(f"unknown workload {name}: they are {' '.join(SEQUENCES)}")
    rows = [measure(workload, threads, options.rounds, options.python)
            for workload in options.workloads or SEQUENCES for threads in options.threads or [1, 2]]
    if options.workloads:
        return
    head = ["workload", "threads", "ours, tokens/s", "ms a token (least to most)", "PyTorch's best, tokens/s",
            "ms a token", "ratio (pairs)"]
    write_section("decoding", f"{versions(options.python, 'decoding')}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
