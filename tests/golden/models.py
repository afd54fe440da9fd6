"""Cases of modules, whole models and a training run, each written from primitives and compared with torch.nn.

`p` is a dictionary of parameters by dotted name, the names of our modules. Weights are [out, in].
"""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from ops import draw, end_aligned, flags, ids
from store import File, exact, same, stream

C, H, FF, V, T, S, LAYERS = 16, 2, 32, 11, 6, 5, 2


# --- the definition


class View(dict):
    """The parameters whose names begin with a prefix, under what follows it: View(p, "attn")["q.weight"]."""

    def __init__(self, p, prefix):
        super().__init__({n[len(prefix) + 1 :]: x for n, x in p.items() if n.startswith(prefix + ".")})


def linear(p, x):
    return F.linear(x, p["weight"], p.get("bias"))


def layer_norm(p, x):
    return F.layer_norm(x, x.shape[-1:], p["weight"], p.get("bias"), 1e-5) if p else x


def attend(p, x, source, heads, causal=False, lengths=None):
    """lengths: how many sources of each sequence count; the others are padding."""

    def split(y):
        return y.unflatten(-1, (heads, -1)).transpose(-3, -2)

    q, k, v = (split(linear(View(p, n), y)) for n, y in [("q", x), ("k", source), ("v", source)])
    mask = end_aligned(q.shape[-2], k.shape[-2]) if causal else None
    if lengths is not None:
        counted = ~padding(lengths, k.shape[-2])[:, None, None]
        mask = counted if mask is None else mask & counted
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return linear(View(p, "o"), mixed.transpose(-3, -2).flatten(-2))


def padding(lengths, length):
    return torch.arange(length) >= torch.tensor(lengths)[:, None]


def feed_forward(p, x, activation=F.gelu):
    return linear(View(p, "proj"), activation(linear(View(p, "fc"), x)))


def residual(p, x, f, pre):
    return x + f(layer_norm(p, x)) if pre else layer_norm(p, x + f(x))


def block(p, x, heads, pre, causal=False, memory=None, activation=F.gelu):
    x = residual(View(p, "norm1"), x, lambda y: attend(View(p, "attn"), y, y, heads, causal), pre)
    if memory is not None:
        x = residual(View(p, "norm2"), x, lambda y: attend(View(p, "cross"), y, memory, heads), pre)
    mlp = lambda y: feed_forward(View(p, "mlp"), y, activation)  # noqa: E731
    return residual(View(p, "norm2" if memory is None else "norm3"), x, mlp, pre)


def stack(p, x, pre, causal=False, memory=None):
    """Positions, blocks and, pre-norm, the final norm."""
    x = x + p["positions.weight"][: x.shape[-2]]
    for layer in range(LAYERS):
        x = block(View(p, f"blocks.{layer}"), x, H, pre, causal, memory)
    return layer_norm(View(p, "norm"), x) if pre else x


def model(p, kind, pre, tokens, source=None):
    """Logits [B, T, V]; tied when there is no head."""
    table = p["tokens.weight"]
    memory = None if source is None else stack(View(p, "encoder"), F.embedding(source, table), pre)
    x = stack(p, F.embedding(tokens, table), pre, kind != "encoder", memory)
    return F.linear(x, p.get("head.weight", table))


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def sinusoids(length, width):
    """PE[pos, 2i] = sin(pos / 10000^(2i / C)), PE[pos, 2i + 1] = cos of the same (Vaswani et al. 2017, section 3.5)."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


# --- parameters


def linear_shapes(name, wide_in, wide_out):
    return {f"{name}.weight": (wide_out, wide_in), f"{name}.bias": (wide_out,)}


def norm_shapes(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def attention_shapes(width, source_width, prefix=""):
    widths = dict(q=width, k=source_width, v=source_width, o=width)
    return {k: s for n, wide_in in widths.items() for k, s in linear_shapes(prefix + n, wide_in, width).items()}


def without_biases(shapes):
    return {name: shape for name, shape in shapes.items() if not name.endswith("bias")}


def feed_forward_shapes(width, hidden, prefix=""):
    return linear_shapes(f"{prefix}fc", width, hidden) | linear_shapes(f"{prefix}proj", hidden, width)


def block_shapes(width, hidden, cross=False, prefix=""):
    shapes = {}
    for norm in ["norm1", "norm2"] + ["norm3"] * cross:
        shapes |= norm_shapes(prefix + norm, width)
    for attention in ["attn"] + ["cross"] * cross:
        shapes |= attention_shapes(width, width, f"{prefix}{attention}.")
    return shapes | feed_forward_shapes(width, hidden, f"{prefix}mlp.")


def stack_shapes(cross=False, prefix=""):
    shapes = {f"{prefix}positions.weight": (T, C)} | norm_shapes(f"{prefix}norm", C)
    for layer in range(LAYERS):
        shapes |= block_shapes(C, FF, cross, f"{prefix}blocks.{layer}.")
    return shapes


def model_shapes(kind):
    """Of the largest variant: the others have no final norm or no head."""
    cross = kind == "encoder_decoder"
    shapes = {"tokens.weight": (V, C), "head.weight": (V, C)} | stack_shapes(cross)
    return shapes | stack_shapes(prefix="encoder.") if cross else shapes


def random_parameters(case, shapes, scale=0.3):
    """Gains of norms lie around 1; everything else, biases too, around 0."""
    rng = stream(f"{case}/parameters")
    gain = re.compile(r"norm\d?\.weight$")
    return {n: exact(bool(gain.search(n)) + scale * rng.standard_normal(shape)) for n, shape in shapes.items()}


# --- the same from torch.nn


def load(module, p, **names):
    """Copies p into a module of torch.nn; names: which of ours each of its parts is."""
    with torch.no_grad():
        for theirs, ours in names.items():
            part = module.get_submodule(theirs)
            if isinstance(part, nn.MultiheadAttention):
                load_attention(part, View(p, ours))
            else:
                part.weight.copy_(p[f"{ours}.weight"])
                if part.bias is not None:
                    part.bias.copy_(p[f"{ours}.bias"])
    return module


def load_attention(module, p):
    qkv = [p[f"{n}.weight"] for n in "qkv"]
    if module.in_proj_weight is not None:
        module.in_proj_weight.copy_(torch.cat(qkv))
    else:
        for theirs, ours in zip([module.q_proj_weight, module.k_proj_weight, module.v_proj_weight], qkv):
            theirs.copy_(ours)
    module.out_proj.weight.copy_(p["o.weight"])
    if module.in_proj_bias is not None:
        module.in_proj_bias.copy_(torch.cat([p[f"{n}.bias"] for n in "qkv"]))
        module.out_proj.bias.copy_(p["o.bias"])


def torch_attention(p, width, source_width, heads, bias=True):
    module = nn.MultiheadAttention(width, heads, bias=bias, kdim=source_width, vdim=source_width,
                                   batch_first=True)  # fmt: skip
    with torch.no_grad():
        load_attention(module, p)
    return module


def torch_block(p, width, heads, hidden, pre, cross=False, activation=F.gelu, bias=True):
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    module = kind(width, heads, hidden, dropout=0.0, activation=activation, batch_first=True, norm_first=pre,
                  bias=bias)  # fmt: skip
    names = dict(norm1="norm1", norm2="norm2", self_attn="attn", linear1="mlp.fc", linear2="mlp.proj")
    return load(module, p, **names, **(dict(multihead_attn="cross", norm3="norm3") if cross else {}))


def torch_stack(p, x, pre, causal=False, memory=None):
    mask = torch.triu(torch.full((x.shape[1], x.shape[1]), -math.inf), 1) if causal else None
    x = x + p["positions.weight"][: x.shape[1]]
    for layer in range(LAYERS):
        module = torch_block(View(p, f"blocks.{layer}"), C, H, FF, pre, memory is not None)
        x = module(x, src_mask=mask) if memory is None else module(x, memory, tgt_mask=mask)
    return F.layer_norm(x, (C,), p["norm.weight"], p["norm.bias"]) if pre else x


def torch_model(p, kind, pre, tokens, source=None):
    table = p["tokens.weight"]
    memory = None if source is None else torch_stack(View(p, "encoder"), table[source], pre)
    return torch_stack(p, table[tokens], pre, kind != "encoder", memory) @ p.get("head.weight", table).T


# --- (b) modules


def make_modules():
    file = File("modules")

    def module(case, f, shapes, inputs, reference=None, **options):
        """f(parameters, *inputs), held against reference(parameters, *inputs)."""
        p = random_parameters(case, shapes)
        rng = stream(case)
        x = {name: draw(rng, what) for name, what in inputs.items()}
        if reference:
            same(f(p, *x.values()), reference(p, *x.values()))

        def call(*tensors):
            return f(dict(zip(p, tensors[len(x) :])), *tensors[: len(x)])

        file.record(case, call, x | p, parameters=p.keys(), **options)

    x, source = dict(x=(2, 4, 12)), dict(source=(2, 5, 20))
    module("linear", linear, {"weight": (5, 12), "bias": (5,)}, x)
    module("embedding", lambda p, x: F.embedding(x, p["weight"]), {"weight": (7, 4)}, dict(x=ids(2, 5, below=7)))
    module("layer_norm", layer_norm, {"weight": (12,), "bias": (12,)}, x)
    module("feed_forward", feed_forward, feed_forward_shapes(12, 20), x)
    module("positions, learned", lambda p, x: x + p["weight"][:4], {"weight": (6, 12)}, x)
    module("positions, sinusoidal", lambda p, x: x + sinusoids(4, 12), {}, x)

    def self_attention(causal):
        return lambda p, x: attend(p, x, x, 3, causal)

    hidden = ~end_aligned(4, 4)  # PyTorch's masks say what is hidden
    module("attention, self", self_attention(False), attention_shapes(12, 12), x,
           lambda p, x: torch_attention(p, 12, 12, 3)(x, x, x)[0])  # fmt: skip
    module("attention, self, causal", self_attention(True), attention_shapes(12, 12), x,
           lambda p, x: torch_attention(p, 12, 12, 3)(x, x, x, attn_mask=hidden)[0])  # fmt: skip
    module("attention, cross", lambda p, x, y: attend(p, x, y, 3), attention_shapes(12, 20), x | source,
           lambda p, x, y: torch_attention(p, 12, 20, 3)(x, y, y)[0])  # fmt: skip

    lengths = dict(self=(4, 2), cross=(3, 5))
    module("attention, self, causal, padding", lambda p, x: attend(p, x, x, 3, True, lengths["self"]),
           attention_shapes(12, 12), x, lambda p, x: torch_attention(p, 12, 12, 3)(
               x, x, x, attn_mask=hidden, key_padding_mask=padding(lengths["self"], 4))[0])  # fmt: skip
    module("attention, cross, padding", lambda p, x, y: attend(p, x, y, 3, lengths=lengths["cross"]),
           attention_shapes(12, 20), x | source, lambda p, x, y: torch_attention(p, 12, 20, 3)(
               x, y, y, key_padding_mask=padding(lengths["cross"], 5))[0])  # fmt: skip
    module("attention, self, no biases", self_attention(False), without_biases(attention_shapes(12, 12)), x,
           lambda p, x: torch_attention(p, 12, 12, 3, bias=False)(x, x, x)[0])  # fmt: skip

    memory = dict(memory=(2, 5, 12))
    for order in ["pre", "post"]:
        pre = order == "pre"
        module(f"block, {order}-norm", lambda p, x: block(p, x, 3, pre, causal=True), block_shapes(12, 20), x,
               lambda p, x: torch_block(p, 12, 3, 20, pre)(x, src_mask=hidden))  # fmt: skip
        module(f"block with cross-attention, {order}-norm",
               lambda p, x, m: block(p, x, 3, pre, causal=True, memory=m), block_shapes(12, 20, cross=True), x | memory,
               lambda p, x, m: torch_block(p, 12, 3, 20, pre, cross=True)(x, m, tgt_mask=hidden))  # fmt: skip
        module(f"block, {order}-norm, relu",
               lambda p, x: block(p, x, 3, pre, causal=True, activation=F.relu), block_shapes(12, 20), x,
               lambda p, x: torch_block(p, 12, 3, 20, pre, activation=F.relu)(x, src_mask=hidden))  # fmt: skip
    module("block, no biases", lambda p, x: block(p, x, 3, True, causal=True), without_biases(block_shapes(12, 20)), x,
           lambda p, x: torch_block(p, 12, 3, 20, True, bias=False)(x, src_mask=hidden))  # fmt: skip
    no_norm = {n: shape for n, shape in block_shapes(12, 20).items() if not n.startswith("norm")}
    module("block, no norm", lambda p, x: block(p, x, 3, True, causal=True), no_norm, x)
    alone = {n: shape for n, shape in block_shapes(12, 20).items() if n.startswith(("norm1", "attn"))}
    module("block, attention alone",
           lambda p, x: residual(View(p, "norm1"), x, lambda y: attend(View(p, "attn"), y, y, 3, True), True), alone, x)
    module("rms_norm", lambda p, x: F.rms_norm(x, (12,), p["weight"], 1e-5), {"weight": (12,)}, x)
    module("feed_forward, swiglu", lambda p, x: linear(View(p, "proj"), F.silu(linear(View(p, "gate"), x)) * linear(View(p, "fc"), x)),
           feed_forward_shapes(12, 20) | {"gate.weight": (20, 12), "gate.bias": (20,)}, x)  # fmt: skip
    file.write()


# --- (c) models


def make_models():
    for kind in ["decoder", "encoder", "encoder_decoder"]:
        file = File(kind)
        rng = stream(kind)
        inputs = dict(tokens=draw(rng, ids(2, T, below=V)))
        if kind == "encoder_decoder":
            inputs["source"] = draw(rng, ids(2, S, below=V))
        targets = draw(rng, ids(2, T, below=V, ignored=0.25))
        for name, x in (inputs | dict(targets=targets)).items():
            file.add(f"shared/in/{name}", x)
        everything = random_parameters(kind, model_shapes(kind))
        for name, x in everything.items():
            file.add(f"shared/param/{name}", x)
        for order in ["pre", "post"]:
            for head in ["tied", "untied"]:
                make_model(file, f"{order}-norm, {head}", kind, everything, inputs, targets)
        file.write()


def make_model(file, case, kind, everything, inputs, targets):
    pre, tied = case.startswith("pre"), case.endswith(" tied")
    absent = re.compile("|".join(["^head"] * tied + [r"(^|encoder\.)norm\."] * (not pre)) or "$.")
    p = {n: x.clone().requires_grad_() for n, x in everything.items() if not absent.search(n)}
    logits = model(p, kind, pre, **inputs)
    same(logits, torch_model(p, kind, pre, **inputs))
    loss = loss_of(logits, targets)
    loss.backward()
    file.add(f"{case}/out/logits", logits)
    file.add(f"{case}/out/loss", loss)
    for name, x in p.items():
        file.add(f"{case}/grad/{name}", x.grad)


# --- (d) a training run


STEPS, WARMUP, RATE, MIN_RATE, BETAS, EPS, DECAY, CLIP = 20, 5, 1e-3, 1e-4, (0.9, 0.95), 1e-8, 0.1, 1.0


def learning_rate(step):
    """Steps count from 1: linear warmup, then half a cosine."""
    if step <= WARMUP:
        return RATE * step / (WARMUP + 1)
    return MIN_RATE + (RATE - MIN_RATE) * 0.5 * (1 + math.cos(math.pi * (step - 1 - WARMUP) / (STEPS - WARMUP)))


class AdamW:
    """Adam with decoupled decay of matrices (Loshchilov and Hutter 2019, algorithm 2)."""

    def __init__(self, p):
        self.p, self.step = p, 0
        self.moments = [(torch.zeros_like(x), torch.zeros_like(x)) for x in p]

    @torch.no_grad()
    def update(self, rate):
        self.step += 1
        for x, (m, v) in zip(self.p, self.moments):
            if x.dim() >= 2:
                x *= 1 - rate * DECAY
            m += (1 - BETAS[0]) * (x.grad - m)
            v += (1 - BETAS[1]) * (x.grad**2 - v)
            m_hat, v_hat = (moment / (1 - beta**self.step) for moment, beta in zip((m, v), BETAS))
            x -= rate * m_hat / (v_hat.sqrt() + EPS)


class TorchAdamW:
    def __init__(self, p):
        matrices, vectors = ([x for x in p if (x.dim() >= 2) == matrix] for matrix in (True, False))
        groups = [dict(params=matrices, weight_decay=DECAY), dict(params=vectors, weight_decay=0.0)]
        self.optimizer = torch.optim.AdamW(groups, betas=BETAS, eps=EPS)

    def update(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()


def train(start, tokens, targets, optimizer_kind):
    """-> losses, gradient norms before clipping, final parameters."""
    p = {n: x.clone().requires_grad_() for n, x in start.items()}
    optimizer = optimizer_kind(p.values())
    losses, norms = [], []
    for step in range(1, STEPS + 1):
        for x in p.values():
            x.grad = None
        loss = loss_of(model(p, "decoder", True, tokens[step - 1]), targets[step - 1])
        loss.backward()
        norm = nn.utils.get_total_norm([x.grad for x in p.values()])
        for x in p.values():
            x.grad *= min(1.0, CLIP / norm.item())
        optimizer.update(learning_rate(step))
        losses.append(loss.detach())
        norms.append(norm)
    return torch.stack(losses), torch.stack(norms), p


def make_training():
    """A decoder (pre-norm, untied) learns to repeat the token before. Three of the V tokens never occur: mere decay."""
    file, B = File("training"), 8
    tokens = draw(stream("training"), ids(STEPS, B, T, below=8))
    targets = torch.cat([torch.full((STEPS, B, 1), -1), tokens[..., :-1]], -1)
    targets[draw(stream("training/ignored"), flags(STEPS, B, T, share=0.2))] = -1  # sequences count unequally
    start = random_parameters("training", model_shapes("decoder"), scale=0.07)
    losses, norms, p = train(start, tokens, targets, AdamW)
    other_losses, other_norms, other_p = train(start, tokens, targets, TorchAdamW)
    for ours, theirs in [(losses, other_losses), (norms, other_norms), *zip(p.values(), other_p.values())]:
        same(ours, theirs, 1e-11)
    assert losses[-1] < losses[0] and norms.min() < CLIP < norms.max(), "some steps must clip and some must not"
    file.add("run/in/tokens", tokens)
    file.add("run/in/targets", targets)
    for name, x in start.items():
        file.add(f"run/param/{name}", x)
    file.add("run/out/learning_rate", torch.tensor([learning_rate(step) for step in range(1, STEPS + 1)]))
    file.add("run/out/loss", losses)
    file.add("run/out/grad_norm", norms)
    for name in ["tokens.weight", "blocks.0.attn.v.weight", "blocks.1.mlp.fc.bias"]:
        file.add(f"run/out/{name}", p[name])
    file.write()
