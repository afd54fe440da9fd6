#!/usr/bin/env python3
"""How soon the command is there, how large it is and what it needs: `./dev bench startup`.

`tapehead --help` as a whole process, and `tapehead train copy` from its call until metrics.jsonl holds its first step.
Before that step a run is saved, and the call waits until the disk has it: so it is measured without a disk, too.
"""
import argparse
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import tempfile
import time

from page import COMMAND, environment, spread, table, versions, write_section

HEAD = ["call", "ms (least to most)", "processor, ms", "limit, ms"]


def seconds_of_help():
    start = time.perf_counter()
    subprocess.run([str(COMMAND), "--help"], check=True, stdout=subprocess.DEVNULL, env=environment())
    return time.perf_counter() - start


def seconds_to_first_step(threads, place):
    with tempfile.TemporaryDirectory(dir=place) as folder:
        log = pathlib.Path(folder, "run/metrics.jsonl")
        start = time.perf_counter()
        training = subprocess.Popen(
            [str(COMMAND), "train", "copy", "--seed", "1", "--threads", str(threads), "--out", f"{folder}/run",
             "--quiet"], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (log.exists() and log.stat().st_size > 0):
            if training.poll() is not None:
                raise SystemExit("bench: the training ended before its first step")
            time.sleep(0.0002)
        seconds = time.perf_counter() - start
        training.send_signal(signal.SIGKILL)
        training.wait()
        return seconds


def row(name, limit, rounds, measure):
    """Of several calls, the time that passed and the processor time that was spent, in milliseconds."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    passed, processor = [], []
    for _ in range(rounds):
        before = spent()
        passed.append(1e3 * measure())
        processor.append(1e3 * (spent() - before))
    return [name, spread(passed, 1), f"{statistics.median(processor):.1f}", limit]


def libraries():
    """Those that the file itself names, and how many come with them."""
    dynamic = subprocess.run(["readelf", "-d", str(COMMAND)], check=True, capture_output=True, text=True).stdout
    named = re.findall(r"Shared library: \[(.*?)\]", dynamic)
    loaded = subprocess.run(["ldd", str(COMMAND)], check=True, capture_output=True, text=True).stdout
    return named, len(re.findall(r"=>", loaded))


def stripped_size():
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, str(COMMAND)], check=True)
        return pathlib.Path(file.name).stat().st_size


def main():
    parser = argparse.ArgumentParser(prog="./dev bench startup", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    rows = [row("`tapehead --help`", 10, options.rounds, seconds_of_help)]
    places = {"on the disk": None} | ({"in memory": "/dev/shm"} if pathlib.Path("/dev/shm").is_dir() else {})
    for threads in (1, 2):
        for place, folder in places.items():
            name = f"`tapehead train copy`, {threads} thread{'s' * (threads > 1)}, run folder {place}"
            rows.append(row(name, 50, options.rounds, lambda: seconds_to_first_step(threads, folder)))
    named, loaded = libraries()
    text = (f"{versions('', 'startup')}\n\n{table(HEAD, rows)}\n\n"
            f"The program has {COMMAND.stat().st_size / 2**20:.1f} MiB, {stripped_size() / 2**20:.1f} without symbols, "
            f"with both precisions and the report's page within. It names {', '.join(named)}; with what these need, "
            f"{loaded} libraries are loaded.")
    print(text)
    write_section("startup", text)


if __name__ == "__main__":
    main()
