"""Random inputs of a case and files of reference numbers.

A file is in the safetensors format. Its keys are CASE/ROLE/NAME, with the roles
    in     inputs                       F32, I32 or BOOL: float and double hold them exactly
    param  parameters by dotted name    F32
    up     dL/dy given to backward      F32
    out    results                      F64
    grad   dL/dx of inputs, parameters  F64
The case "shared" holds inputs and parameters that all cases of its file have in common.
"""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import torch


def stream(case):
    """Random numbers of a case depend on its name alone. NumPy promises that RandomState never changes."""
    return np.random.RandomState(zlib.crc32(case.encode()))


def exact(array):
    """A double tensor of numbers that float holds too."""
    return torch.from_numpy(np.asarray(array, np.float32).astype(np.float64))


def same(a, b, tolerance=1e-12):
    """Asserts what the tests assert: a difference small against the largest number."""
    assert a.shape == b.shape and (a - b).abs().max() <= tolerance * b.abs().max(), (a - b).abs().max()


class File:
    DTYPES = {np.float64: "F64", np.float32: "F32", np.int32: "I32", np.bool_: "BOOL"}

    def __init__(self, name):
        self.path = Path(__file__).with_name(f"{name}.safetensors")
        self.tensors = {}

    def add(self, key, tensor):
        array = tensor.detach().numpy()
        if key.split("/")[-2] in ("out", "grad"):
            assert np.isfinite(array).all(), key
        elif array.dtype == np.float64:
            assert (array == array.astype(np.float32)).all(), f"{key} is not exact in float"
            array = array.astype(np.float32)
        elif array.dtype == np.int64:
            array = array.astype(np.int32)
        assert key not in self.tensors, key
        self.tensors[key] = array

    def record(self, case, f, inputs, parameters=(), gradients=True):
        """Runs f(*inputs) and adds the inputs, the result, a random dL/dy and every gradient."""
        leaves = []
        for name, x in inputs.items():
            self.add(f"{case}/{'param' if name in parameters else 'in'}/{name}", x)
            leaves.append(x.clone().requires_grad_(gradients and x.is_floating_point()))
        y = f(*leaves)
        self.add(f"{case}/out/y", y)
        if not gradients:
            return
        up = exact(stream(f"{case}/up").standard_normal(tuple(y.shape)))
        self.add(f"{case}/up/y", up)
        y.backward(up)
        for name, x in zip(inputs, leaves):
            if x.requires_grad:
                self.add(f"{case}/grad/{name}", x.grad)

    def write(self):
        """Size of the header, the header as JSON, the data: widest numbers first, so that all are aligned."""
        header, data = {"__metadata__": {"torch": torch.__version__.split("+")[0]}}, b""
        for key, array in sorted(self.tensors.items(), key=lambda item: -item[1].itemsize):
            begin, data = len(data), data + array.tobytes()
            dtype = self.DTYPES[array.dtype.type]
            header[key] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(data)]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        self.path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        print(f"{self.path.name}: {len(self.tensors)} tensors, {self.path.stat().st_size} bytes")
