#!/usr/bin/env python3
"""Time to solution, whole processes from an empty folder, ours and PyTorch's, A B A B: `./dev bench solution`.

copy: until every one of 1,000 held-out sequences is right and the model is saved. text: nanoGPT's recipe for a CPU on
$TAPEHEAD_DATA/tinyshakespeare.txt, until the loss on its last tenth is below 1.95. Round r gives both the seed r.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from page import COMMAND, PEERS, environment, spread, table, versions, write_section

LIMIT = 1.95
TITLES = {"copy": "copy to 100 %", "text": f"text to validation loss {LIMIT}"}


def text_file():
    path = pathlib.Path(os.environ.get("TAPEHEAD_DATA", "")) / "tinyshakespeare.txt"
    return path if os.environ.get("TAPEHEAD_DATA") and path.is_file() else None


def run(words):
    """Seconds of the whole process, and the JSON object that it printed last."""
    start = time.perf_counter()
    out = subprocess.run(words, check=True, capture_output=True, text=True, env=environment()).stdout
    return time.perf_counter() - start, json.loads(out.strip().splitlines()[-1])


def ours(task, seed, threads, folder):
    words = [str(COMMAND), "train", "--seed", str(seed), "--threads", str(threads), "--out", f"{folder}/ours", "--json"]
    if task == "copy":
        return words + ["copy"]
    return words + ["--data", str(text_file()), "--set", "train.eval_every=100", "--stop-when", f"loss<{LIMIT}"]


def theirs(task, seed, threads, folder, python, mode):
    words = [python, str(PEERS / "solution.py"), task, "--seed", str(seed), "--threads", str(threads),
             "--out", f"{folder}/theirs", "--mode", mode]
    return words if task == "copy" else words + ["--data", str(text_file()), "--stop-below", str(LIMIT)]


def check(task, name, result):
    """A run that did not solve its problem has no time to solution."""
    if result["exact_match"] != 1 if task == "copy" else result["loss"] >= LIMIT:
        sys.exit(f"bench: {name} did not solve {task}: {result}")


def measure(task, threads, rounds, python, mode):
    times, steps = {"ours": [], "theirs": []}, {"ours": [], "theirs": []}
    for seed in range(1, rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            turns = {"ours": ours(task, seed, threads, folder)}
            if python:
                turns["theirs"] = theirs(task, seed, threads, folder, python, mode)
            for name, words in turns.items():
                seconds, result = run(words)
                check(task, name, result)
                times[name].append(seconds)
                steps[name].append(result["steps"])
    row = {"task": task, "threads": threads, "mode": mode, "times": times, "steps": steps,
           "ratios": [a / b for a, b in zip(times["ours"], times["theirs"])]}
    print(" | ".join(str(cell) for cell in cells(row)), flush=True)
    return row


def cells(row):
    def steps(name):
        least, most = min(row["steps"][name]), max(row["steps"][name])
        return f"{least}" if least == most else f"{least} to {most}"

    if not row["ratios"]:
        return [TITLES[row["task"]], row["threads"], spread(row["times"]["ours"]), steps("ours"), "-", "-", "-"]
    low, high = min(row["ratios"]), max(row["ratios"])
    return [TITLES[row["task"]], row["threads"], spread(row["times"]["ours"]), steps("ours"),
            f"{row['mode']} {spread(row['times']['theirs'])}", steps("theirs"),
            f"**{statistics.median(row['ratios']):.2f}** ({low:.2f} to {high:.2f})"]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench solution", description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="copy|text", help="which ones (default: both)")
    parser.add_argument("--threads", type=int, action="append", help="may be repeated (default: copy 1, 2; text 1)")
    parser.add_argument("--rounds", type=int, help="default: copy 7, text 2")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager", help="of PyTorch")
    parser.add_argument("--python", help="a Python with PyTorch; without it, only ours runs")
    options = parser.parse_args()
    rows = []
    for task in options.tasks or TITLES:
        if task not in TITLES:
            parser.error(f"unknown task {task}: they are {' '.join(TITLES)}")
        if task == "text" and not text_file():
            print("text: skipped, as TAPEHEAD_DATA names no folder with a tinyshakespeare.txt")
            continue
        for threads in options.threads or ([1, 2] if task == "copy" else [1]):
            rows.append(measure(task, threads, options.rounds or (7 if task == "copy" else 2), options.python,
                                options.mode))
    if options.tasks:
        return
    head = ["until", "threads", "ours, s (least to most)", "steps", "PyTorch, s", "steps", "ratio (pairs)"]
    skipped = "" if text_file() else "\n\nThe text was not there: skipped."
    write_section("solution", f"{versions(options.python, 'solution')}\n\n"
                              f"{table(head, [cells(row) for row in rows])}{skipped}")


if __name__ == "__main__":
    main()
