"""What the benches share: running programs in equal surroundings, and their parts of docs/performance.md."""
import json
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"
COMMAND = ROOT / "build/release/tapehead"
PEERS = ROOT / "bench/peers"


def environment():
    """Threads' own settings would make the two unequal."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_"))}


def last_line(words):
    """The JSON object that a program prints last."""
    out = subprocess.run(words, check=True, capture_output=True, text=True, env=environment()).stdout
    return json.loads(out.strip().splitlines()[-1])


class Peer:
    """A PyTorch process that stays, warm, between its turns: each line that it reads is a number of steps to run."""

    def __init__(self, python, script, dump, threads, mode):
        self.name = mode
        self.process = subprocess.Popen(
            [python, str(PEERS / script), dump, "--threads", str(threads), "--mode", mode, "--serve"],
            env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, steps):
        """What it measured; None when it has failed, as torch.compile does without a C++ compiler."""
        try:
            print(steps, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def processor():
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", cpu, re.M))
    widest = "AVX-512" if " avx512f" in cpu else "AVX2" if " avx2" in cpu else "SSE"
    return (f"{fields['model name'].strip()} (family {fields['cpu family']}, model {fields['model']}), {widest}, "
            f"{os.cpu_count()} cores")


def versions(python, command):
    """The line above a table; `python` is None where PyTorch is missing, and empty where it is not asked for."""
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    torch = "" if python == "" else ", PyTorch is missing"
    if python:
        torch = ", PyTorch " + subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                                              capture_output=True, text=True).stdout.strip()
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return (f"Machine: {processor()}, load {os.getloadavg()[0]:.1f}. {system}, {compiler}{torch}. "
            f"Command: `./dev bench {command}`.")


def spread(times, digits=2):
    """"3.10 (2.95 to 3.40)" of a list of numbers: median, least and most."""
    ordered = sorted(times)
    middle = (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2
    return f"{middle:.{digits}f} ({ordered[0]:.{digits}f} to {ordered[-1]:.{digits}f})"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join(lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows])


def write_section(name, text):
    """Replaces what stands between the two marks of one bench."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = PAGE.read_text().split(begin)
    tail = rest.split(end)[1]
    PAGE.write_text(f"{head}{begin}\n{text}\n\n{end}{tail}")
