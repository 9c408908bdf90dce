"""Keeps whole what PyTorch takes apart while AOTAutograd traces: resizing, whose parts have slow gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

# Number of resized dimensions, and the argument between sizes and scales, by op.
_RESIZING = {
    "upsample_nearest1d": (1, 0),
    "upsample_nearest2d": (2, 0),
    "upsample_nearest3d": (3, 0),
    "_upsample_nearest_exact1d": (1, 0),
    "_upsample_nearest_exact2d": (2, 0),
    "_upsample_nearest_exact3d": (3, 0),
    "upsample_linear1d": (1, 1),
    "upsample_bilinear2d": (2, 1),
    "upsample_trilinear3d": (3, 1),
}
_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


def _scaled(size: Any, factor: float) -> Any:
    """The integer part of the product; of a symbolic size by integers alone if the factor is a fraction like 3/2."""
    numerator, denominator = float(factor).as_integer_ratio()
    return size * numerator // denominator if denominator <= 64 else torch.sym_int(size * factor)


def _from_scale_factors(op: Any, dims: int, flags: int) -> Callable[..., Tensor]:
    """The overload `vec` as a call of the op itself, with the sizes that the factors give."""
    from torch._decomp.decompositions import upsample_compute_output_size

    theirs = op.vec.py_kernels[DispatchKey.Autograd]

    def vec(input: Tensor, output_size: Any, *args: Any) -> Tensor:
        # The ops' own shape functions refuse a tensor without elements, which eager takes.
        if any(isinstance(size, int) and size == 0 for size in input.shape):
            return theirs(input, output_size, *args)
        *given, factors = args
        if factors and output_size is None:
            sizes = [_scaled(size, factor) for size, factor in zip(input.shape[2:], factors, strict=True)]
        else:
            sizes = upsample_compute_output_size(input.size(), output_size, factors)
        return op.default(input, sizes, *given[:flags], *(factors or [None] * dims))

    return vec


@contextmanager
def resizing_stays_whole() -> Iterator[None]:
    """Graphs that are traced meanwhile have `aten.upsample_bilinear2d.default` and the like."""
    kernels = []
    for name, (dims, flags) in _RESIZING.items():
        op = getattr(torch.ops.aten, name)
        kernels.append((op.vec, dict.fromkeys(_KEYS, _from_scale_factors(op, dims, flags))))
        kernels.append((op.default, {}))
    saved = []
    try:
        for overload, mine in kernels:
            saved.append((overload, dict(overload.py_kernels)))
            for key in _KEYS:
                overload.py_kernels.pop(key, None)
            overload.py_kernels.update(mine)
            overload._dispatch_cache.clear()
        yield
    finally:
        for overload, theirs in saved:
            overload.py_kernels.clear()
            overload.py_kernels.update(theirs)
            overload._dispatch_cache.clear()
