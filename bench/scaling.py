#!/usr/bin/env python3
"""Time and peak memory of a step against one size at a time, as charts and exponents: `./dev bench scaling`.

An exponent is the slope of a line through the logarithms of the last three points; beside it stand the one that theory
gives for large sizes and, of time, that of the operations counted for the same three points. Memory is what exceeds that
of the smallest size. A time is the least of its steps: other programs can only add to it.
"""
import argparse
import os
import pathlib

from chart import draw, exponent
from page import COMMAND, ROOT, last_line, table, versions, write_section

# What varies: the workload with its other options, the option, its values, and theory's exponents of time and memory.
SWEEPS = {
    "length": ("T, attention alone (W4)", ["W4"], "--seq", [256 * 2**i for i in range(7)], 2, 1),
    "model-length": ("T, a whole model (W1, batch 1)", ["W1", "--batch", "1"], "--seq", [256 * 2**i for i in range(7)],
                     2, 1),
    "width": ("width (W2, batch 4)", ["W2", "--batch", "4"], "--width", [32 * 2**i for i in range(6)], 2, 2),
    "batch": ("batch (W2)", ["W2"], "--batch", [2**i for i in range(8)], 1, 1),
    "vocabulary": ("vocabulary (W2)", ["W2"], "--vocabulary", [64 * 4**i for i in range(6)], 1, 1),
    "threads": ("threads (W2)", ["W2"], "--threads", [], -1, 0),
}


def numbers_of_threads():
    cores = os.cpu_count() or 1
    return sorted({1, cores} | {2**i for i in range(1, 8) if 2**i < cores})


def measure(words, option, value, seconds):
    """A step's seconds and operations and the peak memory in MiB, from about a second of steps, two at least."""
    threads = [] if option == "--threads" else ["--threads", "1"]
    r = last_line([str(COMMAND), "bench", *words, option, str(value), "--steps",
                   str(max(2, min(200, round(1 / seconds)))), *threads, "--json"])
    return r["ms_min"] / 1e3, r["gflops"] * r["ms_step"] * 1e6, r["peak_rss_mib"]


def sweep(name):
    title, words, option, values, of_time, of_memory = SWEEPS[name]
    values = values or numbers_of_threads()
    times, operations, memory = [], [], []
    for value in values:
        seconds, count, mib = measure(words, option, value, times[-1] if times else 0.01)
        times.append(seconds)
        operations.append(count)
        memory.append(mib)
    row = {"name": name, "title": title, "values": values, "times": times, "operations": operations, "memory": memory,
           "of_time": of_time, "of_memory": of_memory}
    print(" | ".join(str(cell) for cell in cells(row)), flush=True)
    return row


def cells(row):
    last = slice(-3, None)
    if len(row["values"]) < 2:
        return [row["title"], f"{row['values'][0]}", "-", "-", "-", "-", "-"]
    values = row["values"][last]
    time = exponent(values, row["times"][last])
    if row["name"] == "threads":  # which change neither operations nor memory
        counted, memory = 0, exponent(values, row["memory"][last])
    else:
        counted = exponent(values, row["operations"][last])
        memory = exponent(values, [m - row["memory"][0] for m in row["memory"][last]])
    return [row["title"], f"{row['values'][0]} to {row['values'][-1]}", row["of_time"], f"{counted:.2f}",
            f"**{time:.2f}**", row["of_memory"], f"**{memory:.2f}**"]


def draw_all(rows):
    """docs/scaling/NAME.svg, and the lines of the page that show them."""
    folder = ROOT / "docs/scaling"
    folder.mkdir(exist_ok=True)
    lines = []
    for row in rows:
        if len(row["values"]) < 2:
            continue
        svg = draw(row["title"], row["values"], [("ms a step", [1e3 * t for t in row["times"]], row["of_time"]),
                                                 ("peak memory, MiB", row["memory"], row["of_memory"])])
        pathlib.Path(folder, f"{row['name']}.svg").write_text(svg)
        lines.append(f"![Time of a step and peak memory against {row['title']}](scaling/{row['name']}.svg)")
    return "\n\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench scaling", description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", metavar="NAME", help=f"which ones (default: all): {' '.join(SWEEPS)}")
    options = parser.parse_args()
    for name in options.sweeps:
        if name not in SWEEPS:
            parser.error(f"unknown sweep {name}: they are {' '.join(SWEEPS)}")
    rows = [sweep(name) for name in options.sweeps or SWEEPS]
    if options.sweeps:
        return
    head = ["against", "from, to", "time: theory", "operations", "measured", "memory: theory", "measured"]
    write_section("scaling", f"{versions('', 'scaling')}\n\n{table(head, [cells(row) for row in rows])}\n\n"
                             f"{draw_all(rows)}")


if __name__ == "__main__":
    main()
