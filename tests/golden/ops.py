"""Cases of every op: values, and gradients for a random dL/dy. A row is op(name, function, variant, ...); a variant
gives each input a shape (normal numbers), a function of a random stream, or numbers."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from store import File, exact, same, stream


def make():
    file = File("ops")

    def op(name, f, *variants, **options):
        for number, variant in enumerate(variants):
            case = f"{name}/{number}"
            rng = stream(case)
            file.record(case, f, {key: draw(rng, what) for key, what in variant.items()}, **options)

    for rows in (arithmetic, elementwise, shapes, reductions, rows_of_numbers, products, tokens, attention):
        rows(op)
    file.write()


# --- inputs


def draw(rng, what):
    array = np.asarray(rng.standard_normal(what) if isinstance(what, tuple) else what(rng) if callable(what) else what)
    return torch.from_numpy(array) if array.dtype in (np.int64, np.bool_) else exact(array)


def normal(*shape, scale=1.0, offset=0.0):
    return lambda rng: scale * rng.standard_normal(shape) + offset


def positive(*shape):
    return lambda rng: np.exp2(rng.uniform(-3, 3, shape))


def nonzero(*shape):
    return lambda rng: np.exp2(rng.uniform(-1, 1, shape)) * rng.choice([-1, 1], shape)


def ids(*shape, below, ignored=0.0):
    return lambda rng: np.where(rng.uniform(size=shape) < ignored, -1, rng.randint(0, below, shape))


def flags(*shape, share=0.6):
    return lambda rng: rng.uniform(size=shape) < share


def visible(*shape):
    """A mask that leaves source 0 to every query."""
    return lambda rng: flags(*shape)(rng) | (np.arange(shape[-1]) == 0)


# --- rows


def arithmetic(op):
    pairs = [
        ((2, 3), (2, 3)),
        ((2, 3, 4), (3, 1)),
        ((4,), (2, 1, 4)),
        ((), (2, 3)),
        ((5, 1), (1, 7)),
        ((2, 1, 3, 1), (4, 1, 5)),
    ]
    for name, f in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul)]:
        op(name, f, *[dict(a=a, b=b) for a, b in pairs])
    op("div", torch.div, *[dict(a=a, b=nonzero(*b)) for a, b in pairs])
    op("scale", lambda x: x * 0.375, dict(x=(2, 3)), dict(x=()))
    op("neg", torch.neg, dict(x=(2, 3)))
    choice = dict(condition=flags(4, 1, 3))
    op("where", torch.where, dict(**choice, a=(4, 2, 3), b=(3,)), dict(**choice, a=(), b=(2, 1)))
    op("masked_fill", lambda x, keep: x.masked_fill(~keep, -1.5), dict(x=(2, 3, 4), keep=flags(3, 4)),
       dict(x=(2, 3, 4), keep=flags(2, 1, 4)))  # fmt: skip


def elementwise(op):
    inputs = [dict(x=(3, 5)), dict(x=normal(2, 3, 19, scale=3)), dict(x=np.linspace(-12, 12, 33))]
    op("log", torch.log, dict(x=positive(3, 5)), dict(x=np.exp2(np.arange(-9.0, 10))))
    op("exp", torch.exp, *inputs)
    op("tanh", torch.tanh, *inputs)
    op("sigmoid", torch.sigmoid, *inputs)
    op("relu", F.relu, *inputs)
    op("gelu", F.gelu, *inputs)
    op("gelu, tanh", lambda x: F.gelu(x, approximate="tanh"), *inputs)
    op("silu", F.silu, *inputs)


def shapes(op):
    x = dict(x=(2, 3, 4))
    op("reshape to [4, 6]", lambda x: x.reshape(4, 6), x)
    op("permute 2 0 1", lambda x: x.permute(2, 0, 1), x)
    op("transpose", lambda x: x.transpose(-2, -1), x, dict(x=(5, 7)))
    op("transpose 0 1", lambda x: x.transpose(0, 1), x)
    op("transpose 0 1, reshape to [3, 8]", lambda x: x.transpose(0, 1).reshape(3, 8), x)
    op("slice 1 to 3 of axis 1", lambda x: x[:, 1:3], x, dict(x=(1, 5, 2)))
    op("concat 0", lambda a, b: torch.cat([a, b, a], 0), dict(a=(2, 3), b=(1, 3)))
    op("concat -1", lambda a, b: torch.cat([a, b, a], -1), dict(a=(2, 3, 1), b=(2, 3, 4)))
    op("contiguous of transpose", lambda x: x.transpose(0, 2).contiguous(), x)
    op("detach", lambda x: x * x.detach(), x)


def reductions(op):
    inputs = [dict(x=(3,)), dict(x=(2, 3, 4)), dict(x=(2, 1, 33))]
    op("sum", torch.sum, *inputs)
    op("mean", torch.mean, *inputs)
    for name, f in [("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("logsumexp", torch.logsumexp)]:
        op(f"{name} of axis -1", lambda x: f(x, -1), *inputs)
        op(f"{name} of axis 1, kept", lambda x: f(x, 1, keepdim=True), *inputs[1:])
    op("logsumexp of axis -1, large", lambda x: torch.logsumexp(x, -1), dict(x=normal(5, 3, offset=500)))


def rows_of_numbers(op):
    inputs = [dict(x=x) for x in [(5,), (2, 3, 4), (3, 1), normal(2, 67, scale=4), normal(3, 9, scale=20, offset=900)]]
    op("softmax", lambda x: x.softmax(-1), *inputs)
    op("log_softmax", lambda x: x.log_softmax(-1), *inputs)

    def layer_norm(x, gain=None, bias=None):
        return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)

    def rms_norm(x, gain=None):
        return F.rms_norm(x, x.shape[-1:], gain, 1e-5)

    gain = normal(6, scale=0.3, offset=1)
    inputs = [(2, 3, 6), normal(3, 6, scale=0.003), normal(3, 6, scale=2, offset=8)]  # the second: eps counts
    op("layer_norm", layer_norm, *[dict(x=x, gain=gain, bias=(6,)) for x in inputs])
    op("layer_norm, not affine", layer_norm, dict(x=(4, 33)))
    op("rms_norm", rms_norm, *[dict(x=x, gain=gain) for x in inputs])
    op("rms_norm, no gain", rms_norm, dict(x=(4, 33)))


def products(op):
    op(
        "matmul",
        torch.matmul,
        dict(a=(3, 4), b=(4, 5)),
        dict(a=(2, 3, 4), b=(4, 5)),
        dict(a=(2, 1, 3, 4), b=(5, 4, 2)),
        dict(a=(1, 7), b=(7, 1)),
        dict(a=(19, 33), b=(33, 17)),
    )
    transposed = [dict(a=(2, 4, 3), b=(5, 4)), dict(a=(2, 33, 9), b=(2, 17, 33))]
    op("matmul of transposes", lambda a, b: a.mT @ b.mT, *transposed)
    op(
        "linear",
        F.linear,
        dict(x=(2, 3, 4), weight=(5, 4), bias=(5,)),
        dict(x=(4,), weight=(1, 4), bias=(1,)),
        dict(x=(2, 2, 5, 18), weight=(35, 18), bias=(35,)),
    )
    op("linear, no bias", F.linear, dict(x=(3, 4), weight=(5, 4)), dict(x=(2, 17, 9), weight=(6, 9)))


def tokens(op):
    op("embedding", F.embedding, dict(ids=ids(2, 4, below=5), table=(5, 3)), dict(ids=ids(4, below=9), table=(9, 16)))
    op("dropout in evaluation", lambda x: F.dropout(x, 0.5, training=False), dict(x=(2, 3)))

    def cross_entropy(smoothing=0.0, divisor=None):
        def f(logits, targets):
            kind = "sum" if divisor else "mean"
            options = dict(ignore_index=-1, reduction=kind, label_smoothing=smoothing)
            return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), **options) / (divisor or 1)

        return f

    plain = [dict(logits=(4, 7), targets=ids(4, below=7)),
             dict(logits=normal(2, 3, 5, scale=20), targets=ids(2, 3, below=5))]  # fmt: skip
    padded = [dict(logits=(2, 6, 7), targets=ids(2, 6, below=7, ignored=0.4)),
              dict(logits=(9, 37), targets=ids(9, below=37, ignored=0.2))]  # fmt: skip
    op("cross_entropy", cross_entropy(), *plain, *padded)
    op("cross_entropy, smoothed", cross_entropy(smoothing=0.125), *plain, *padded)
    op("cross_entropy, divisor 10", cross_entropy(smoothing=0.125, divisor=10), *padded)
    op("mse", F.mse_loss, dict(prediction=(2, 3), target=(2, 3)), dict(prediction=(33,), target=(33,)))


# --- attention


def end_aligned(T, S):
    """Causal as in decoding: query t sees sources up to t + S - T. (PyTorch's is_causal aligns to the start.)"""
    return torch.ones(T, S, dtype=torch.bool).tril(S - T)


def attend(q, k, v, allowed=None, scale=None):
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (x.expand(*lead, *x.shape[-2:]) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=scale)


def attend_causally(q, k, v, allowed=True):
    return attend(q, k, v, end_aligned(q.shape[-2], k.shape[-2]) & allowed)


def causal_weights(q, k):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~end_aligned(q.shape[-2], k.shape[-2]), -math.inf).softmax(-1)


def attention(op):
    square = dict(q=(2, 3, 4, 5), k=(2, 3, 4, 5), v=(2, 3, 4, 5))
    wide = dict(q=(2, 3, 4), k=(2, 7, 4), v=(2, 7, 6))
    shared = dict(q=(2, 3, 4, 5), k=(2, 1, 6, 5), v=(2, 1, 6, 5))  # one head of keys and values for three of queries
    long = dict(q=(66, 4), k=(90, 4), v=(90, 4))
    longer = dict(q=(130, 4), k=(130, 4), v=(130, 4))
    op("attention", attend, square, wide, shared, long)
    op("attention, causal", attend_causally, square, wide, shared, longer)
    x = [torch.from_numpy(stream("is_causal").standard_normal((2, 5, 4))) for _ in range(3)]
    same(attend_causally(*x), F.scaled_dot_product_attention(*x, is_causal=True))

    masks = [visible(2, 1, 4, 4), visible(2, 1, 7), visible(4, 6), visible(66, 90)]
    masked = [dict(**inputs, allowed=mask) for inputs, mask in zip([square, wide, shared, long], masks)]
    op("attention, masked", attend, *masked)
    op("attention, causal and masked", attend_causally, *masked[:3])
    op("attention, scale 0.25, temperature 0.5", lambda q, k, v: attend(q, k, v, scale=0.25 / 0.5), square, wide)
    grouped = dict(q=(2, 6, 4, 5), k=(2, 2, 7, 5), v=(2, 2, 7, 3))  # each head of keys and values serves three of queries
    op("attention, grouped heads", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), grouped)
    op("attention, bias", lambda q, k, v, bias: attend(q, k, v, allowed=bias),
       square | dict(bias=(2, 3, 4, 4)), wide | dict(bias=(3, 7)), shared | dict(bias=(3, 1, 6)), long | dict(bias=(66, 90)))  # fmt: skip
    inputs = [dict(q=x["q"], k=x["k"]) for x in (square, wide, shared)]
    op("attention weights, causal", causal_weights, *inputs, gradients=False)
