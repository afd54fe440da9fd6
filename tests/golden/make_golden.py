"""Makes the reference numbers of tests/golden_*test.cpp with PyTorch, in double precision.

    python3 tests/golden/make_golden.py      # needs torch and numpy; the files beside it were made with PyTorch 2.13.0

Every case is written with primitives of torch.nn.functional, in the order of this project's own definitions, and is
compared with torch.nn.MultiheadAttention, TransformerEncoder, TransformerDecoder and torch.optim.AdamW wherever these
express the same thing. A second run on the same machine writes the same bytes.
"""

import torch

import models
import ops

if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    ops.make()
    models.make_modules()
    models.make_models()
    models.make_training()
