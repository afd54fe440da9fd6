"""The workloads of `tapehead bench` in PyTorch, from the weights and batches that `--dump FILE` wrote.

    python bench/peers/workloads.py FILE --threads 1 --steps 200 [--mode eager|compile]

The last line of stdout is JSON with the keys of `tapehead bench --json`. Written as one would for speed: one product
for q, k and v, scaled_dot_product_attention, fused AdamW.
"""
import argparse
import json
import resource
import statistics
import struct
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32}


def read_dump(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = bytearray(file.read())
    facts = json.loads(header.pop("__metadata__")["workload"])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]], count=-1 if begin == end else (end - begin) // (
            8 if entry["dtype"] == "F64" else 4), offset=begin)
        tensors[name] = flat.clone().reshape(entry["shape"])
    return facts, tensors


class Parameters:
    """Weights by their name in the dump; fuses those that PyTorch code would keep in one matrix."""

    def __init__(self, tensors, prefix=""):
        self.tensors, self.prefix = tensors, prefix

    def __truediv__(self, name):
        return Parameters(self.tensors, f"{self.prefix}{name}.")

    def __call__(self, *names):
        found = [self.tensors.get(f"param/{self.prefix}{name}") for name in names]
        return None if found[0] is None else torch.nn.Parameter(torch.cat(found) if len(found) > 1 else found[0])


class LayerNorm(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.weight, self.bias = p("weight"), p("bias")

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Linear(torch.nn.Module):
    def __init__(self, p, *names):
        super().__init__()
        self.weight = p(*(f"{n}.weight" for n in names))
        self.bias = p(*(f"{n}.bias" for n in names))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Attention(torch.nn.Module):
    def __init__(self, p, heads, causal, cross):
        super().__init__()
        self.heads, self.causal, self.cross = heads, causal, cross
        if cross:
            self.q, self.kv = Linear(p, "q"), Linear(p, "k", "v")
        else:
            self.qkv = Linear(p, "q", "k", "v")
        self.o = Linear(p, "o")

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, source):
        width = x.shape[-1]
        if self.cross:
            q = self.q(x)
            k, v = self.kv(source).split(width, -1)
        else:
            q, k, v = self.qkv(x).split(width, -1)
        y = F.scaled_dot_product_attention(self.split(q), self.split(k), self.split(v), is_causal=self.causal)
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Block(torch.nn.Module):
    def __init__(self, p, heads, causal, cross):
        super().__init__()
        self.norm1, self.attn = LayerNorm(p / "norm1"), Attention(p / "attn", heads, causal, False)
        self.norm2, self.cross, self.norm3 = LayerNorm(p / "norm2"), None, None
        if cross:
            self.cross, self.norm3 = Attention(p / "cross", heads, False, True), LayerNorm(p / "norm3")
        self.fc, self.proj = Linear(p / "mlp", "fc"), Linear(p / "mlp", "proj")

    def forward(self, x, memory):
        x = x + self.attn(self.norm1(x), None)
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), memory)
        last = self.norm2 if self.cross is None else self.norm3
        return x + self.proj(F.gelu(self.fc(last(x))))


class Stack(torch.nn.Module):
    def __init__(self, p, layers, heads, causal, cross):
        super().__init__()
        self.positions = p("positions.weight")
        self.blocks = torch.nn.ModuleList(Block(p / f"blocks.{i}", heads, causal, cross) for i in range(layers))
        self.norm = LayerNorm(p / "norm")

    def forward(self, x, memory=None):
        x = x + self.positions[: x.shape[1]]
        for block in self.blocks:
            x = block(x, memory)
        return self.norm(x)


class Transformer(torch.nn.Module):
    def __init__(self, facts, tensors):
        super().__init__()
        p, layers, heads = Parameters(tensors), facts["layers"], facts["heads"]
        encodes = facts["kind"] == "encoder-decoder"
        self.tokens, self.head = p("tokens.weight"), p("head.weight")  # without a head of its own the table is it
        self.encoder = Stack(p / "encoder", layers, heads, False, False) if encodes else None
        self.stack = Stack(p, layers, heads, True, encodes)

    def logits(self, inputs, source=None):
        memory = None if self.encoder is None else self.encoder(F.embedding(source, self.tokens))
        x = self.stack(F.embedding(inputs, self.tokens), memory)
        return F.linear(x, self.tokens if self.head is None else self.head)

    def forward(self, inputs, targets, source=None):
        """The loss, in which targets of -1 do not count."""
        return F.cross_entropy(self.logits(inputs, source).flatten(0, 1), targets.flatten(), ignore_index=-1)


def adamw(model, facts):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": facts["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
        lr=facts["learning_rate"], betas=(facts["beta1"], facts["beta2"]), eps=facts["eps"], fused=True)


def training_step(facts, tensors, mode):
    model = Transformer(facts, tensors)
    optimizer = adamw(model, facts)
    forward = torch.compile(model) if mode == "compile" else model
    count = sum(name.endswith("/inputs") for name in tensors)
    batches = []
    for i in range(count):
        source = tensors.get(f"batch/{i}/source")
        batches.append((tensors[f"batch/{i}/inputs"].long(), tensors[f"batch/{i}/targets"].long(),
                        None if source is None else source.long()))
    parameters = list(model.parameters())

    def step(number):
        loss = forward(*batches[number % count])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, facts["clip"], foreach=True)
        optimizer.step()
        return loss.item()

    return step


def attention_step(tensors, mode):
    q, k, v = (torch.nn.Parameter(tensors[f"in/{name}"]) for name in "qkv")
    g = tensors["in/g"]

    def run(q, k, v):
        return (F.scaled_dot_product_attention(q, k, v, is_causal=True) * g).sum()

    forward = torch.compile(run) if mode == "compile" else run

    def step(_):
        q.grad = k.grad = v.grad = None
        loss = forward(q, k, v)
        loss.backward()
        return loss.item()

    return step


class Peer:
    """A workload ready to run; later calls go on with the same model."""

    def __init__(self, path, mode):
        self.facts, tensors = read_dump(path)
        alone = self.facts["workload"] == "W4"
        self.step = attention_step(tensors, mode) if alone else training_step(self.facts, tensors, mode)
        self.done = 0

    def run(self, steps):
        """[(seconds, loss), ...]"""
        measured = []
        for _ in range(steps):
            start = time.perf_counter()
            loss = self.step(self.done)
            measured.append((time.perf_counter() - start, loss))
            self.done += 1
        return measured


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--serve", action="store_true", help="run as many steps as each line of stdin says")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    peer = Peer(options.dump, options.mode)
    requests = (int(line) for line in sys.stdin) if options.serve else [options.steps]
    for steps in requests:
        measured = peer.run(steps)
        seconds = [s for s, _ in measured]
        print(json.dumps({
            "workload": peer.facts["workload"], "threads": options.threads, "mode": options.mode, "steps": steps,
            "ms_step": statistics.median(seconds) * 1e3, "ms_min": min(seconds) * 1e3,
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "first_loss": measured[0][1], "loss": measured[-1][1]}), flush=True)


if __name__ == "__main__":
    main()
