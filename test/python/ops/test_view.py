"""Views, and ops that put tensors side by side or write a part into a whole, against eager: every bit of it.

A view that is a graph's result is made again outside the graph by AOTAutograd, so each case is also read by another op.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import ALL, BOOL, F16, F32, F64, I32, I64, U8, Case, check, check_gradients, values
from torch import Tensor
from torch.utils._pytree import tree_map

pytestmark = pytest.mark.compiler

aten = torch.ops.aten


def read(case: Case) -> Case:
    """The case, and copies of its results."""

    def both(*args):
        result = case(*args)
        return result, tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, result)

    return both


def check_views(cases: dict[str, Case], *inputs, dynamic: bool = False) -> None:
    check({name: read(case) for name, case in cases.items()}, *inputs, dynamic=dynamic, exact=True)


SIZES = (6, 20, 1, 35)

RESHAPES = {
    "split": lambda x: x.view(6, 4, 5, 1, 7, 5),
    "merge": lambda x: x.reshape(120, 35),
    "merge all": lambda x: x.reshape(-1),
    "mix": lambda x: x.reshape(6, 5, 140),
    "unit": lambda x: x.view(1, 6, 20, 1, 1, 35, 1),
    "no unit": lambda x: x.view(6, 20, 35),
    "infer": lambda x: x.view(-1, 10, 35),
    "same": lambda x: x.view(6, 20, 1, 35),
    "flatten": lambda x: x.flatten(1, 2),
    "flatten all": torch.flatten,
    "unflatten": lambda x: x.unflatten(1, (2, 10)),
    "_unsafe_view": lambda x: aten._unsafe_view.default(x, [60, 70]),
    "twice": lambda x: x.view(6, 4, 5, 35).transpose(1, 2).reshape(6, 20, 35),
}
PERMUTATIONS = {
    "permute": lambda x: x.permute(3, 0, 2, 1),
    "permute(negative)": lambda x: x.permute(-1, 1, -2, 0),
    "permute(identity)": lambda x: x.permute(0, 1, 2, 3),
    "transpose": lambda x: x.transpose(1, -1),
    "transpose(same)": lambda x: x.transpose(2, 2),
    "t": lambda x: x[:, :, 0, 0].t(),
    "t(row)": lambda x: x[0, :, 0, 0].t(),
    "mT": lambda x: x.mT,
    "movedim": lambda x: x.movedim(0, 2),
    "movedims": lambda x: x.movedim((0, 1), (3, 0)),
    "swapaxes": lambda x: x.swapaxes(0, 3),
}
UNITS = {
    "squeeze": lambda x: x.squeeze(),
    "squeeze(2)": lambda x: x.squeeze(2),
    "squeeze(-1)": lambda x: x.squeeze(-1),
    "squeeze((0, 2))": lambda x: x.squeeze((0, 2)),
    "unsqueeze(0)": lambda x: x.unsqueeze(0),
    "unsqueeze(-1)": lambda x: x.unsqueeze(-1),
    "unsqueeze(-3)": lambda x: x.unsqueeze(-3),
    "expand": lambda x: x.expand(6, 20, 9, 35),
    "expand(-1)": lambda x: x.expand(-1, 20, 9, -1),
    "expand(more)": lambda x: x.expand(2, 3, 6, 20, 4, 35),
    "expand(same)": lambda x: x.expand(6, 20, 1, 35),
    "expand_as": lambda x: x.expand_as(torch.empty(6, 20, 3, 35)),
}
SLICES = {
    "[1:4]": lambda x: x[1:4],
    "[-3:]": lambda x: x[-3:],
    "[:-2]": lambda x: x[:-2],
    "[-4:-1]": lambda x: x[-4:-1],
    "[::2]": lambda x: x[::2],
    "[1::3]": lambda x: x[:, 1::3],
    "[-9:17:4]": lambda x: x[:, -9:17:4],
    "[3:100]": lambda x: x[3:100],
    "[50:]": lambda x: x[50:],
    "[-50:4]": lambda x: x[-50:4],
    "[4:2]": lambda x: x[4:2],
    "[:]": lambda x: x[:],
    "[..., 2:5]": lambda x: x[..., 2:5],
    "several": lambda x: x[1:, ::2, :, -7:-3],
    "select": lambda x: x[2],
    "select(-1)": lambda x: x[..., -1],
    "select(1, -3)": lambda x: x.select(1, -3),
    "mixed": lambda x: x[None, 1:3, 4, ..., ::5],
    "narrow": lambda x: x.narrow(1, 3, 7),
    "narrow(negative)": lambda x: x.narrow(1, -5, 3),
}
PARTS = {
    "split": lambda x: x.split(4),
    "split(7, 1)": lambda x: x.split(7, 1),
    "split([1, 0, 5])": lambda x: x.split([1, 0, 5]),
    "chunk": lambda x: x.chunk(3, -1),
    "chunk(uneven)": lambda x: x.chunk(4, 0),
    "tensor_split": lambda x: x.tensor_split(3, 1),
    "unbind": lambda x: x.unbind(),
    "unbind(2)": lambda x: x.unbind(2),
    "diagonal": lambda x: x.diagonal(),
    "diagonal(2)": lambda x: x.diagonal(2, 1, 3),
    "diagonal(-3)": lambda x: x.diagonal(-3, -1, 0),
    "diagonal(100)": lambda x: x.diagonal(100),
    "unfold": lambda x: x.unfold(1, 5, 2),
    "unfold(-1)": lambda x: x.unfold(-1, 7, 7),
    "unfold(0)": lambda x: x.unfold(0, 6, 1),
}
VIEWS = RESHAPES | PERMUTATIONS | UNITS | SLICES | PARTS

COPIES = {
    "cat": lambda x: torch.cat([x, x + x, x[:2]]),
    "cat(1)": lambda x: torch.cat([x[:, 3:], x[:, :5]], 1),
    "cat(-1)": lambda x: torch.cat([x, x[..., :0], x[..., 4:9]], -1),
    "cat(empty)": lambda x: torch.cat([x.new_empty(0), x], 1),
    "cat(one)": lambda x: torch.cat([x]),
    "stack": lambda x: torch.stack([x, x + x]),
    "stack(1)": lambda x: torch.stack([x, x, x], 1),
    "stack(-1)": lambda x: torch.stack([x, x], -1),
    "repeat": lambda x: x.repeat(2, 1, 3, 1),
    "repeat(more)": lambda x: x.repeat(3, 1, 2, 1, 2),
    "repeat(0)": lambda x: x.repeat(1, 0, 1, 1),
    "repeat(1)": lambda x: x.repeat(1, 1, 1, 1),
    "tile": lambda x: x.tile(2, 3),
    "roll": lambda x: x.roll(7),
    "roll(1)": lambda x: x.roll(3, 1),
    "roll(-2)": lambda x: x.roll((-2, 50), (0, -1)),
    "roll(0)": lambda x: x.roll(6, 0),
    "flip": lambda x: x.flip(0),
    "flip(more)": lambda x: x.flip((1, -1)),
    "flip(())": lambda x: x.flip(()),
    "pad": lambda x: F.pad(x, (1, 2)),
    "pad(2)": lambda x: F.pad(x, (0, 3, 1, 0, 2, 2), value=1),
    "pad(negative)": lambda x: F.pad(x, (-4, 2, 0, 0, 1, -3), value=0),
    "pad(cut)": lambda x: F.pad(x, (-4, -2)),
    "pad(0)": lambda x: F.pad(x, (0, 0)),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:3] + x[:3], 0, 2, 5),
    "slice_scatter(end)": lambda x: torch.slice_scatter(x, x[:, :5], 1, -5),
    "slice_scatter(step)": lambda x: torch.slice_scatter(x, x[:, :5], 1, 2, 17, 3),
    "slice_scatter(all)": lambda x: torch.slice_scatter(x, x + x, 0),
    "slice_scatter(none)": lambda x: torch.slice_scatter(x, x[:, :0], 1, 4, 4),
    "select_scatter": lambda x: torch.select_scatter(x, x[0] + x[1], 0, 3),
    "select_scatter(-1)": lambda x: torch.select_scatter(x, x[:, 4], 1, -1),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, x.diagonal(0, 1, 3) + x.diagonal(1, 1, 3), 2, 1, 3),
    "slice_backward": lambda x: aten.slice_backward.default(x, [6, 30, 1, 35], 1, 5, 25, 1),
    "slice_backward(step)": lambda x: aten.slice_backward.default(x, [20, 20, 1, 35], 0, 1, 18, 3),
    "select_backward": lambda x: aten.select_backward.default(x[0], [4, 20, 1, 35], 0, -2),
    "diagonal_backward": lambda x: aten.diagonal_backward.default(x[:, 0, 0, :6], [6, 8, 9], 3, 1, 2),
    "diagonal_backward(-2)": lambda x: aten.diagonal_backward.default(x[:, 0, 0, :6], [6, 8, 9], -2, 1, 2),
    "tril": lambda x: x[:, :, 0].tril(),
    "tril(-3)": lambda x: x[:, :, 0].tril(-3),
    "triu": lambda x: x[:, :, 0].triu(),
    "triu(5)": lambda x: x[:, :, 0].triu(5),
    "writes": lambda x: writes(x),
}


def writes(x: Tensor) -> Tensor:
    """Assignments to views, which become scatters."""
    x = x.clone()
    x[1, 3:5] = 2
    x[:, ::4] += x[:, 1:6].clone()
    x[..., -1] = x[..., 0]
    return x


@pytest.mark.parametrize("dtype", [F32, I64, BOOL])
def test_views(dtype):
    check_views(VIEWS, values(dtype, *SIZES))


@pytest.mark.parametrize("dtype", ALL)
def test_copies(dtype):
    check(COPIES, values(dtype, *SIZES), exact=True)


def test_views_of_other_layouts():
    cases = {name: case for name, case in VIEWS.items() if name not in ("_unsafe_view",)}
    check_views(cases, values(F32, 35, 1, 6, 20).permute(2, 3, 1, 0))
    check_views(cases, values(F32, 6, 1, 1, 35).expand(*SIZES))
    check_views(cases, values(F32, 12, 20, 1, 70)[::2, ..., ::2])


def test_copies_of_other_layouts():
    check(COPIES, values(F32, 35, 1, 6, 20).permute(2, 3, 1, 0), exact=True)
    check(COPIES, values(F32, 6, 1, 1, 35).expand(*SIZES), exact=True)
    check(COPIES, values(F32, 12, 20, 1, 70)[::2, ..., ::2], exact=True)


def test_special_values_are_copied():
    x = torch.tensor([[float("nan"), float("inf"), -0.0], [0.0, 1e-45, -float("inf")]])
    cases = {
        "roll": lambda x: x.roll(1, 1),
        "pad": lambda x: F.pad(x, (1, 1), value=float("-inf")),
        "cat": lambda x: torch.cat([x, x.flip(0)]),
        "tril": lambda x: x.tril(),
        "select_scatter": lambda x: torch.select_scatter(x, x[0], 0, 1),
    }
    check(cases, x, exact=True)


def test_joined_dtypes_are_promoted():
    cases = {
        "cat": lambda a, b, c: torch.cat([a, b, c]),
        "stack": lambda a, b, c: torch.stack([b, a[:4]]),
        "cat(ints)": lambda a, b, c: torch.cat([c, b]),
    }
    check(cases, values(F16, 5), values(I32, 4), values(U8, 3), exact=True)
    check(cases, values(F64, 5), values(F32, 4), values(BOOL, 3), exact=True)


def test_rank_zero():
    cases = {
        "view": lambda x: x.view(1, 1),
        "reshape": lambda x: x.view(1).view(()),
        "expand": lambda x: x.expand(3, 2),
        "unsqueeze": lambda x: x.unsqueeze(-1),
        "squeeze": lambda x: x.squeeze(0),
        "transpose": lambda x: x.transpose(0, -1),
        "permute": lambda x: x.permute(()),
        "t": lambda x: x.t(),
        "unfold": lambda x: x.unfold(0, 1, 1),
    }
    check_views(cases, torch.tensor(3.5))
    copies = {
        "stack": lambda x: torch.stack([x, x]),
        "repeat": lambda x: x.repeat(2, 3),
        "flip": lambda x: x.flip(0),
        "roll": lambda x: x.roll(1, 0),
    }
    check(copies, torch.tensor(3.5), exact=True)


def test_no_elements():
    cases = {
        "view": lambda x: x.view(0, 7),
        "reshape": lambda x: x.reshape(3, 0, 2),
        "transpose": lambda x: x.transpose(0, 1),
        "slice": lambda x: x[1:],
        "select": lambda x: x[:, 2],
        "expand": lambda x: x.expand(2, 0, 5),
        "flip": lambda x: x.flip(0),
        "split": lambda x: x.split(2, 1),
    }
    check_views(cases, torch.empty(0, 5))
    copies = {
        "cat": lambda x: torch.cat([x, x.new_ones(2, 5)]),
        "cat(nothing)": lambda x: torch.cat([x, x]),
        "pad": lambda x: F.pad(x, (0, 0, 1, 1), value=2),
        "repeat": lambda x: x.repeat(2, 2),
        "roll": lambda x: x.roll(1, 0),
        "tril": lambda x: x.tril(),
    }
    check(copies, torch.empty(0, 5), exact=True)


def test_as_strided_reads_memory_as_eager_lays_it_out():
    cases = {
        "rows": lambda x: (x + 1).as_strided((3, 4), (6, 1)),
        "transposed": lambda x: (x.t() + 1).as_strided((3, 4), (4, 1)),
        "windows": lambda x: (x + 1).as_strided((9, 4), (2, 1), 3),
        "diagonal": lambda x: x.as_strided((4,), (7,)),
        "input": lambda x: x.as_strided((5, 2), (1, 5), 2),
    }
    check_views(cases, values(F32, 4, 6))
    check_views({"transposed": lambda x: x.t().as_strided((3, 4), (1, 3))}, values(F32, 6, 4).t())
    dynamic = {"rows": lambda x: (x + 1).as_strided((x.shape[0], x.shape[1]), (1, x.shape[0]))}
    check_views(dynamic, values(F32, 4, 6), dynamic=True)


# ---- gradients


def test_gradients():
    def f(x, y):
        parts = x.split((2, 4))
        joined = torch.cat([parts[1].transpose(0, 1), y[:, None].expand(20, 4, 35)[:, 1:]], 1)
        stacked, padded = torch.stack([y, x[0]]), F.pad(y, (1, -2))
        return joined, x[2] * 2, x[1:, ::3, -1], x.diagonal(1), stacked, padded, x.unbind(1)[3]

    check_gradients(f, values(F32, 6, 20, 35), values(F32, 20, 35))


# ---- sizes known at run time

DYNAMIC = {
    "view": lambda x: x.view(x.shape[0], -1),
    "split dimension": lambda x: x.view(x.shape[0], 4, x.shape[1] // 4, 35),
    "merge": lambda x: x.flatten(0, 1),
    "transpose": lambda x: x.transpose(0, 1).flatten(1),
    "[1:]": lambda x: x[1:],
    "[:-1]": lambda x: x[:-1],
    "[-3:]": lambda x: x[:, -3:],
    "[2:-2]": lambda x: x[:, 2:-2],
    "[::2]": lambda x: x[:, ::2],
    "[1::3]": lambda x: x[:, 1::3],
    "[n // 2:]": lambda x: x[x.shape[0] // 2 :],
    "[:n // 2]": lambda x: x[: x.shape[0] // 2],
    "[-(n // 2):]": lambda x: x[-(x.shape[0] // 2) :],
    "[0]": lambda x: x[0],
    "[-1]": lambda x: x[:, -1],
    "[n - 2]": lambda x: x[x.shape[0] - 2],
    "expand": lambda x: x[:, None].expand(-1, x.shape[0], -1, -1),
    "chunk": lambda x: x.chunk(2, 1),
    "split": lambda x: x.split(x.shape[1] // 2, 1),
    "diagonal": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 4, 2),
    "flip": lambda x: x.flip(0, 2),
}
DYNAMIC_COPIES = {
    "cat": lambda x: torch.cat([x, x[1:]]),
    "stack": lambda x: torch.stack([x, x], 1),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat(n)": lambda x: x[0].repeat(x.shape[0], 2),
    "roll": lambda x: x.roll(3, 0),
    "roll(-1)": lambda x: x.roll((-1, 2), (1, 0)),
    "roll(all)": lambda x: x.roll(5),
    "pad": lambda x: F.pad(x, (1, 2, 3, 0)),
    "pad(n)": lambda x: F.pad(x, (0, 0, 0, x.shape[0]), value=1.5),
    "pad(-1)": lambda x: F.pad(x, (-1, 2)),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:3], 0, 2, 5),
    "slice_scatter(-2)": lambda x: torch.slice_scatter(x, x[:2], 0, -2),
    "select_scatter": lambda x: torch.select_scatter(x, x[0], 0, -1),
    "tril": lambda x: x.tril(),
    "triu(n)": lambda x: x.triu(x.shape[0] // 2),
    "writes": lambda x: writes(x[..., None]),
}


def test_dynamic_views():
    check_views(DYNAMIC, values(F32, 6, 20, 35), dynamic=True)


def test_dynamic_copies():
    check(DYNAMIC_COPIES, values(F32, 6, 20, 35), dynamic=True, exact=True)


def test_one_compilation_serves_all_sizes():
    def f(x):
        y = x[1:, -3:].transpose(0, 1)
        return torch.cat([y, y.flip(0)], 1), x.roll(2, 0), F.pad(x[:-1], (1, 1)), x.view(-1) + 1, x.tril(1)

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((5, 37), (64, 4), (17, 128)):
            x = values(F32, *sizes)
            for got, want in zip(compiled(x), f(x), strict=True):
                assert torch.equal(got, want)
