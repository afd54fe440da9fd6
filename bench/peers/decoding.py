"""Greedy decoding with kept keys and values in PyTorch, from what `tapehead bench WN --decode --dump FILE` wrote.

    python bench/peers/decoding.py FILE --threads 1 --sequences 5 [--mode eager|compile]

The last line of stdout is JSON with the keys of `tapehead bench --decode --json`. The cache is allocated once, and a
mask hides its unwritten end, so that every token has the same shapes: what torch.compile wants.
"""
import argparse
import json
import resource
import statistics
import sys
import time

import torch
import torch._inductor.config
import torch.nn.functional as F

from workloads import Transformer, read_dump


class Decoder(torch.nn.Module):
    """The workload's model for one sequence, reading `n` tokens at a time behind those that it has read."""

    def __init__(self, facts, tensors):
        super().__init__()
        self.model, self.heads = Transformer(facts, tensors), facts["heads"]
        length, width = facts["length"], facts["width"] // facts["heads"]
        for i in range(facts["layers"]):
            for name in ("keys", "values"):
                self.register_buffer(f"{name}{i}", torch.zeros(1, self.heads, length, width))
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril())

    def attend(self, attention, layer, x, at):
        q, k, v = (attention.split(y) for y in attention.qkv(x).chunk(3, -1))
        keys, values = self.get_buffer(f"keys{layer}"), self.get_buffer(f"values{layer}")
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=self.mask[at])
        return attention.o(y.transpose(1, 2).reshape(x.shape))

    def forward(self, ids, at):
        """The most likely token after `ids` [1, n], whose positions are `at` [n]."""
        stack = self.model.stack
        x = F.embedding(ids, self.model.tokens) + stack.positions[at]
        for layer, block in enumerate(stack.blocks):
            x = x + self.attend(block.attn, layer, block.norm1(x), at)
            x = x + block.proj(F.gelu(block.fc(block.norm2(x))))
        return F.linear(stack.norm(x[:, -1:]), self.model.tokens).argmax(-1)


@torch.inference_mode()
def decode(model, one, prompt, length):
    """Tokens after the prompt, up to `length` of both; `one` is the model for a single token, perhaps compiled."""
    positions = torch.arange(length)
    token = model(prompt, positions[: prompt.shape[1]])
    said = [token]
    for at in range(prompt.shape[1], length - 1):
        token = one(token, positions[at : at + 1])
        said.append(token)
    return torch.cat(said, 1)[0].tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=5)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--serve", action="store_true", help="decode as many sequences as each line of stdin says")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    facts, tensors = read_dump(options.dump)
    model = Decoder(facts, tensors).eval()
    torch._inductor.config.freezing = True  # the weights stay as they are: they may be packed
    one = torch.compile(model, fullgraph=True, dynamic=False) if options.mode == "compile" else model
    prompt = tensors["prompt"].long()[None]
    requests = (int(line) for line in sys.stdin) if options.serve else [options.sequences]
    for sequences in requests:
        seconds = []
        for _ in range(sequences):
            start = time.perf_counter()
            tokens = decode(model, one, prompt, facts["length"])
            seconds.append((time.perf_counter() - start) / len(tokens))
        median = statistics.median(seconds)
        print(json.dumps({
            "workload": facts["workload"], "threads": options.threads, "mode": options.mode, "steps": sequences,
            "ms_token": median * 1e3, "tokens_per_second": 1 / median, "tokens": tokens,
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


if __name__ == "__main__":
    main()
