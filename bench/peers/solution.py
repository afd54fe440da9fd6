"""Two small problems solved in PyTorch, as `tapehead train` solves them: from nothing to a saved model.

    python bench/peers/solution.py copy --out DIR
    python bench/peers/solution.py text --data FILE.txt --stop-below 1.95 --out DIR

Model, batch, optimizer, schedule and evaluation are those of `tapehead train copy` and `tapehead train --data`; weights
and batches are drawn by PyTorch. Stops at the first evaluation where every held-out sequence is right or, for a text,
the loss is below the limit. The last line of stdout is JSON.
"""
import argparse
import json
import math
import pathlib

import torch

from workloads import Transformer, adamw

HELD_OUT = 1000
RECIPES = {
    "copy": {"layers": 1, "width": 64, "heads": 2, "bias": True, "tied": False, "std": 0.04, "batch": 64,
             "steps": 1000, "learning_rate": 3e-3, "min_learning_rate": 0.0, "warmup": 50, "weight_decay": 0.01,
             "eval_every": 25},
    "text": {"layers": 4, "width": 128, "heads": 4, "bias": False, "tied": True, "std": 0.02, "batch": 12,
             "steps": 2000, "learning_rate": 1e-3, "min_learning_rate": 1e-4, "warmup": 100, "weight_decay": 0.1,
             "eval_every": 100},
}
COMMON = {"kind": "decoder", "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "clip": 1.0}


class Copy:
    """Ten of sixteen symbols, a separator, the same ten again, of which only the second ten count in the loss."""
    LENGTH, SYMBOLS = 10, 16
    vocabulary, context = SYMBOLS + 1, 2 * LENGTH

    def draw(self, count, held_out):
        source = torch.randint(self.SYMBOLS, (count, self.LENGTH))
        inputs = torch.cat([source, torch.full((count, 1), self.SYMBOLS), source[:, :-1]], 1)
        targets = torch.cat([torch.full_like(source, -1), source], 1)
        return inputs, targets


class Text:
    """Windows of 64 characters; the last tenth of the file is held out."""
    context = 64

    def __init__(self, path):
        text = pathlib.Path(path).read_text(encoding="utf-8")
        characters = sorted(set(text))
        number = {c: i for i, c in enumerate(characters)}
        ids = torch.tensor([number[c] for c in text])
        self.vocabulary = len(characters)
        boundary = len(ids) - len(ids) // 10
        # Every window as a view: drawing a batch is one indexing.
        self.windows = [part.unfold(0, self.context + 1, 1) for part in (ids[:boundary], ids[boundary:])]

    def draw(self, count, held_out):
        windows = self.windows[held_out]
        drawn = windows[torch.randint(len(windows), (count,))]
        return drawn[:, :-1], drawn[:, 1:]


def first_weights(facts):
    """As `tapehead train` draws them, by their names in a dump."""
    layers, width, std = facts["layers"], facts["width"], facts["std"]
    tensors = {"tokens.weight": torch.randn(facts["vocabulary"], width) * std,
               "positions.weight": torch.randn(facts["length"], width) * std}
    if not facts["tied"]:
        tensors["head.weight"] = torch.randn(facts["vocabulary"], width) * std

    def linear(name, inputs, outputs, scale=1.0):
        tensors[f"{name}.weight"] = torch.randn(outputs, inputs) * std * scale
        if facts["bias"]:
            tensors[f"{name}.bias"] = torch.zeros(outputs)

    def norm(name):
        tensors[f"{name}.weight"] = torch.ones(width)
        if facts["bias"]:
            tensors[f"{name}.bias"] = torch.zeros(width)

    last = 1 / math.sqrt(2 * layers)
    for i in range(layers):
        for name in "qkv":
            linear(f"blocks.{i}.attn.{name}", width, width)
        linear(f"blocks.{i}.attn.o", width, width, last)
        linear(f"blocks.{i}.mlp.fc", width, 4 * width)
        linear(f"blocks.{i}.mlp.proj", 4 * width, width, last)
        norm(f"blocks.{i}.norm1")
        norm(f"blocks.{i}.norm2")
    norm("norm")
    return {f"param/{name}": tensor for name, tensor in tensors.items()}


def learning_rate(facts, step):
    """Linear warmup, then half a cosine."""
    rate, least, warmup = facts["learning_rate"], facts["min_learning_rate"], facts["warmup"]
    if step <= warmup:
        return rate * step / (warmup + 1)
    return least + (rate - least) * (1 + math.cos(math.pi * (step - 1 - warmup) / (facts["steps"] - warmup))) / 2


@torch.inference_mode()
def evaluate(model, inputs, targets):
    """Loss, and the share of sequences whose every counted token is the most likely one."""
    loss = exact = 0.0
    for x, y in zip(inputs.split(250), targets.split(250)):
        logits = model.logits(x)
        loss += torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-1).item() * len(x)
        exact += ((logits.argmax(-1) == y) | (y < 0)).all(1).sum().item()
    return loss / len(inputs), exact / len(inputs)


def train(task, facts, stop_below, mode):
    """Returns the model, the last step, and loss and exact match of its evaluation."""
    facts = facts | COMMON | {"vocabulary": task.vocabulary, "length": task.context}
    model = Transformer(facts, first_weights(facts))
    optimizer = adamw(model, facts)
    held_out = task.draw(HELD_OUT, True)
    forward = torch.compile(model) if mode == "compile" else model
    for step in range(1, facts["steps"] + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(facts, step)
        loss = forward(*task.draw(facts["batch"], False))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), facts["clip"], foreach=True)
        optimizer.step()
        if step % facts["eval_every"] == 0:
            loss, exact = evaluate(model, *held_out)
            if exact == 1 or loss < stop_below:
                break
    return model, step, loss, exact


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=list(RECIPES))
    parser.add_argument("--data")
    parser.add_argument("--out", required=True)
    parser.add_argument("--stop-below", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    task = Copy() if options.task == "copy" else Text(options.data)
    model, step, loss, exact = train(task, RECIPES[options.task], options.stop_below, options.mode)
    pathlib.Path(options.out).mkdir(parents=True)
    torch.save(model.state_dict(), f"{options.out}/model.pt")
    print(json.dumps({"steps": step, "loss": loss, "exact_match": exact}))


if __name__ == "__main__":
    main()
