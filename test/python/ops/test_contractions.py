"""Matrix products, against float64: sizes around tiles, layouts, types, symbolic sizes, and what is fused with them."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from compare import BF16, F16, F32, F64, I8, I16, I32, I64, assert_layout, assert_native, values
from torch.utils._pytree import tree_flatten

import torch_accel

pytestmark = pytest.mark.compiler

CHOICES = ("own", "library", "auto")
PORTABLE = "cpu:x86-64-v3"  # no instructions for half precision, 16 registers of 256 bits

# Error relative to the largest value. A sum of k products in f32 errs by about sqrt(k) * 2^-24 of its terms. Results of
# half precision are rounded once, and once more for each op that eager has a tensor between.
TOLERANCE = {F32: 1e-5, F64: 1e-14, BF16: 2.0**-8, F16: 2.0**-11}

# Rows around tiles of 4, 8, 13 and 14 and blocks of 128; terms around vectors; columns around panels of 16, 32 and 64.
SIZES = (
    [(m, 33, 33) for m in (1, 2, 3, 4, 5, 8, 13, 14, 15, 29, 128, 130, 300)]
    + [(15, k, 17) for k in (1, 2, 7, 8, 64, 257)]
    + [(14, 8, n) for n in (1, 5, 8, 16, 17, 31, 32, 64, 100, 130)]
    + [(1, 1, 1), (1, 257, 130), (300, 7, 5), (300, 64, 32), (130, 257, 100), (300, 2, 130), (29, 64, 64)]
)


def assert_near(got, want, truth, name="", rounds=1):
    """`want` is eager's, whose layout counts; `truth` is what eager computes in f64, whose values count."""
    assert_layout(got, want, name)
    if not got.is_floating_point():
        assert torch.equal(got, want), name
        return
    a, t = got.double(), truth.double()
    finite = t.isfinite()
    assert torch.equal(a[~finite].nan_to_num(7.0, 8.0, 9.0), t[~finite].nan_to_num(7.0, 8.0, 9.0)), (
        f"{name}: not finite"
    )
    a, t = a[finite], t[finite]
    if t.numel():
        error = float((a - t).abs().max() / t.abs().max().clamp_min(1e-30))
        assert error <= rounds * TOLERANCE[got.dtype], f"{name}: error of {error:.1e}"


def compare(function, inputs, compiled, *, wide=None, rounds=1, name=""):
    """Runs both on these inputs; `wide` is the function in f64 where it isn't the same one."""
    got, want = tree_flatten(compiled(*inputs))[0], tree_flatten(function(*inputs))[0]
    doubled = [t.double() if t.is_floating_point() else t for t in inputs]
    truth = tree_flatten((wide or function)(*doubled))[0]
    assert len(got) == len(want)
    for k, (g, w, t) in enumerate(zip(got, want, truth, strict=True)):
        assert_near(g, w, t, f"{name}[{k}]", rounds)


def check(function, *inputs, choice="own", target="auto", dynamic=False, wide=None, rounds=1, native=True):
    torch_accel.reset_reports()
    options = {"contractions": choice, "target": target}
    compiled = torch.compile(function, backend="accel", dynamic=dynamic, fullgraph=True, options=options)
    compare(function, inputs, compiled, wide=wide, rounds=rounds)
    if native:
        assert_native()


def library_calls():
    return [call for report in torch_accel.reports() for call in report.library]


def products(*pairs):
    """One graph of all products, so that compiling is paid for once."""
    flat = [t for pair in pairs for t in pair]
    return (lambda *args: tuple(a @ b for a, b in zip(args[::2], args[1::2], strict=True))), flat


def operands(sizes, dtype=F32):
    return [(values(dtype, m, k, seed=1), values(dtype, k, n, seed=2)) for m, k, n in sizes]


# ---- Sizes


@pytest.mark.parametrize("target", ["auto", PORTABLE])
@pytest.mark.parametrize("choice", CHOICES)
def test_sizes(choice, target):
    function, inputs = products(*operands(SIZES))
    check(function, *inputs, choice=choice, target=target)


def test_sizes_of_batches():
    sizes = [(1, 5, 8, 17), (2, 14, 33, 31), (3, 15, 7, 32), (5, 1, 64, 100), (7, 130, 8, 16), (4, 3, 257, 5)]
    pairs = [(values(F32, b, m, k, seed=1), values(F32, b, k, n, seed=2)) for b, m, k, n in sizes]
    function, inputs = products(*pairs)
    for choice in CHOICES:
        check(function, *inputs, choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_ops(choice):
    def function(a, b, x, y, bias, column, c, d, w):
        return (
            torch.mm(a, b),
            torch.bmm(x, y),
            torch.addmm(bias, a, b),
            torch.addmm(c, a, b, beta=0.5, alpha=2.0),
            torch.addmm(column, a, b, beta=-1.0),
            torch.addmm(c, a, b, beta=0),
            torch.baddbmm(d, x, y),
            torch.baddbmm(bias, x, y, alpha=0.25, beta=3.0),
            F.linear(a, w, bias),
            F.linear(x, w),
            torch.mv(a, b[:, 3]),
            torch.dot(a[1], b[:, 2]),
            a[0] @ b,
            x @ b,
            a @ y,
            torch.einsum("bmk,bkn->nbm", x, y),
        )

    inputs = [values(F32, *sizes, seed=k) for k, sizes in enumerate(
        [(15, 33), (33, 17), (3, 15, 33), (3, 33, 17), (17,), (15, 1), (15, 17), (3, 15, 17), (17, 33)]
    )]  # fmt: skip
    check(function, *inputs, choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_ignored_addend(choice):
    """What is multiplied by a beta of 0 may hold anything."""
    c = torch.full((15, 17), float("nan"))
    check(lambda c, a, b: torch.addmm(c, a, b, beta=0), c, *operands([(15, 8, 17)])[0], choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_no_elements(choice):
    function, inputs = products(*operands([(0, 8, 17), (15, 0, 17), (15, 8, 0), (0, 0, 17), (0, 0, 0)]))
    check(function, *inputs, choice=choice)
    batches = [((0, 5, 8), (0, 8, 9)), ((2, 5, 0), (2, 0, 9)), ((2, 0, 8), (2, 8, 9)), ((2, 5, 8), (2, 8, 0))]
    function, inputs = products(*[(values(F32, *a), values(F32, *b)) for a, b in batches])
    check(function, *inputs, choice=choice)
    check(lambda b, x, w: torch.addmm(b, x, w), values(F32, 17), values(F32, 15, 0), values(F32, 0, 17), choice=choice)


def test_own_means_own():
    function, inputs = products(*operands([(15, 33, 17), (300, 33, 17), (3, 7, 5)]))
    check(function, *inputs, choice="own")
    assert not library_calls()
    check(function, *inputs, choice="library")
    assert len(library_calls()) == 3


# ---- Layouts


@pytest.mark.parametrize("choice", CHOICES)
def test_strides(choice):
    def function(a, b, t, u, wide, row, column):
        return (
            a @ t.t(),  # B by columns
            u.t() @ b,  # A by columns
            u.t() @ t.t(),
            a[::2] @ b[:, ::3],  # stepped
            a[:, 1::2] @ b[1::2],
            a[:, 5:20] @ b[5:20, 2:15],  # parts
            wide[:, ::2] @ b,  # A's terms two apart
            row.expand(15, 33) @ b,
            a @ column.expand(33, 17),
            a @ column.t().reshape(33, 1).expand(-1, 40),
            a.flip(0) @ b.flip(1),
            a.flip(1) @ b.flip(0),
            (a @ b).t(),
            torch.cat([a, a + 1]) @ b,
            a @ torch.cat([b, b * 2], 1),
            F.pad(a, (0, 2, 1, 0)) @ F.pad(b, (1, 0, 2, 0)),
        )

    inputs = [values(F32, *sizes, seed=k) for k, sizes in enumerate(
        [(15, 33), (33, 17), (17, 33), (33, 15), (15, 66), (33,), (33, 1)]
    )]  # fmt: skip
    for target in ("auto", PORTABLE):
        check(function, *inputs, choice=choice, target=target)


def test_strides_of_inputs():
    """The same layouts, in the arguments themselves."""
    a, b = values(F32, 66, 30), values(F32, 34, 66)
    inputs = [a[::2].t(), b.t()[::2], a.t()[::2, :33], values(F32, 1, 17).expand(33, 17), b[1:, ::3].t()[:, ::1]]
    for choice in CHOICES:
        check(lambda x, y, z, w, v: (x @ y, z @ w, x @ w, v @ y), *inputs, choice=choice)


def test_strides_of_batches():
    def function(x, y, q, shared):
        return (
            x @ y.transpose(1, 2),
            x.transpose(0, 1) @ y.transpose(1, 2)[:, :, :9].transpose(0, 1)[:, :1].expand(-1, 7, -1).transpose(0, 1)[0],
            q.transpose(1, 2) @ q.transpose(1, 2).transpose(2, 3),  # heads of attention
            x @ shared.expand(3, 33, 17),
            x[:1].expand(3, -1, -1) @ y.transpose(1, 2),
        )

    inputs = [values(F32, 3, 7, 33), values(F32, 3, 17, 33), values(F32, 2, 15, 4, 8), values(F32, 33, 17)]
    for choice in CHOICES:
        check(function, *inputs, choice=choice)


# ---- Types


@pytest.mark.parametrize("choice", CHOICES)
def test_f64(choice):
    function, inputs = products(*operands([(15, 33, 17), (300, 64, 32), (5, 257, 130), (29, 8, 8), (1, 33, 33)], F64))
    for target in ("auto", PORTABLE):
        check(function, *inputs, choice=choice, target=target)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", [I64, I32, I16, I8])
def test_integers(dtype, choice):
    """Sums that don't fit wrap around."""
    pairs = operands([(15, 33, 17), (300, 64, 32), (5, 257, 130), (3, 7, 5)], dtype)
    largest = torch.iinfo(dtype).max
    pairs.append((pairs[0][0] * (largest // 10), pairs[0][1]))
    function, inputs = products(*pairs)
    check(function, *inputs, choice=choice)


@pytest.mark.parametrize("target", ["auto", PORTABLE])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", [BF16, F16])
def test_half_precision(dtype, choice, target):
    """Sums are kept in f32: one rounding, however many terms."""
    sizes = [(15, 33, 17), (300, 64, 32), (5, 257, 130), (29, 8, 8), (130, 33, 100), (14, 2, 31)]
    pairs = operands(sizes, dtype)
    pairs.append((values(dtype, 3, 15, 33), values(dtype, 3, 33, 17)))
    pairs.append((values(dtype, 33, 15).t(), values(dtype, 17, 33).t()))
    function, inputs = products(*pairs)
    check(function, *inputs, choice=choice, target=target)


# ---- Values that aren't finite


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("target", ["auto", PORTABLE])
def test_not_finite(choice, target):
    """NaN and infinity stay in their rows and columns: the lanes that fill panels and tiles up don't spread them."""
    pairs = []
    for m, k, n in [(15, 33, 17), (29, 8, 33), (300, 33, 100), (5, 64, 31)]:
        a, b = operands([(m, k, n)])[0]
        a[m // 2, k // 2] = float("nan")
        a[0, 1] = float("inf")
        b[k - 1, n - 1] = float("-inf")
        pairs.append((a, b))
    function, inputs = products(*pairs)
    check(function, *inputs, choice=choice, target=target)


# ---- Constant weights


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("choice", CHOICES)
def test_constant_weights(choice, dtype):
    """Weights are packed once, and anew when they are written to."""
    layers = [torch.nn.Linear(33, n, bias=n != 17).to(dtype) for n in (5, 16, 17, 100, 130)]
    model = torch.nn.ModuleList(layers)

    def function(x):
        return tuple(layer(x) for layer in model)

    def wide(x):
        return tuple(F.linear(x, m.weight.double(), None if m.bias is None else m.bias.double()) for m in model)

    options = {"contractions": choice}
    for target in ("auto", PORTABLE):
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(function, backend="accel", fullgraph=True, options={**options, "target": target})
            for _ in range(2):
                # The library's product is rounded before the bias is added to it; eager rounds once.
                rounds = 1 if choice == "own" else 2
                compare(function, [values(dtype, 15, 33)], compiled, wide=wide, rounds=rounds)
                for layer in layers:
                    layer.weight.mul_(-1.5)


# ---- Symbolic sizes


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("target", ["auto", PORTABLE])
def test_dynamic_rows(choice, target):
    torch_accel.reset_reports()
    function = lambda x, w, b: (F.gelu(F.linear(x, w, b)), x @ w.t())  # noqa: E731
    w, b = values(F32, 33, 64, seed=1), values(F32, 33, seed=2)
    compiled = torch.compile(
        function, backend="accel", fullgraph=True, options={"contractions": choice, "target": target}
    )
    for m in (15, 2, 3, 4, 5, 8, 9, 13, 14, 29, 128, 130, 300):
        x = values(F32, m, 64)
        torch._dynamo.mark_dynamic(x, 0)
        compare(function, [x, w, b], compiled, name=f"{m} rows")
    assert_native()
    assert len(torch_accel.reports()) == 1


@pytest.mark.parametrize("target", ["auto", PORTABLE])
def test_dynamic_rows_in_blocks(target):
    """With so many terms a block has some hundred rows: numbers of rows around one, two and more blocks."""
    function = lambda x, w: F.linear(x, w)  # noqa: E731
    w = values(F32, 33, 16384, seed=1)
    compiled = torch.compile(
        function, backend="accel", fullgraph=True, options={"contractions": "own", "target": target}
    )
    with torch.no_grad():
        for m in (128, 2, 13, 14, 15, 55, 56, 57, 60, 61, 112, 113, 120, 169, 500):
            x = values(F32, m, 16384)
            torch._dynamo.mark_dynamic(x, 0)
            compare(function, [x, w], compiled, name=f"{m} rows")
    assert_native()
    assert len(torch_accel.reports()) == 1


@pytest.mark.parametrize("choice", CHOICES)
def test_dynamic_batches(choice):
    torch_accel.reset_reports()
    function = lambda x, y: (x @ y).relu()  # noqa: E731
    compiled = torch.compile(function, backend="accel", fullgraph=True, options={"contractions": choice})
    for batch in (3, 2, 7, 16):
        x, y = values(F32, batch, 15, 33), values(F32, batch, 33, 17)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(y, 0)
        compare(function, [x, y], compiled, name=f"{batch} matrices")
    assert_native()
    assert len(torch_accel.reports()) == 1


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("choice", CHOICES)
def test_dynamic_everything(choice, dtype):
    torch_accel.reset_reports()
    function = lambda a, b, x, y: (a @ b, x @ y, b.t() @ a.t())  # noqa: E731
    compiled = torch.compile(function, backend="accel", fullgraph=True, options={"contractions": choice})
    for batch, m, k, n in [(2, 15, 33, 17), (3, 4, 8, 16), (5, 130, 257, 100), (2, 29, 7, 31), (4, 3, 64, 2)]:
        a, b = values(dtype, m, k), values(dtype, k, n, seed=1)
        x, y = values(dtype, batch, m, k, seed=2), values(dtype, batch, k, n, seed=3)
        for t in (a, b, x, y):
            torch._dynamo.mark_dynamic(t, list(range(t.dim())))
        compare(function, [a, b, x, y], compiled, name=f"{batch} {m} {k} {n}")
    assert_native()
    assert len(torch_accel.reports()) == 1


# ---- What is fused with products


def epilogues(a, b, bias, column, residual, gate):
    p = a @ b
    return (
        p + bias,
        F.gelu(p + bias),
        torch.relu(a @ b),
        F.gelu(torch.addmm(bias, a, b), approximate="tanh") + residual,
        p + residual.t().contiguous().t(),
        (p * column + bias).sigmoid(),
        (a @ b) * gate[0],
        torch.where(residual > 0, a @ b, residual),
        (a @ b) * (a @ b),
        torch.arange(p.shape[1]) + p,
        p.tanh().t(),
        (a @ b)[1:, 2:] + 1,
        (a @ b).sum(1),
        (a @ b).softmax(-1),
    )


@pytest.mark.parametrize("target", ["auto", PORTABLE])
@pytest.mark.parametrize("choice", CHOICES)
def test_epilogues(choice, target):
    for m, n in [(15, 17), (29, 64), (130, 100)]:
        inputs = [values(F32, *s, seed=k) for k, s in enumerate([(m, 33), (33, n), (n,), (m, 1), (m, n), (2,)])]
        check(epilogues, *inputs, choice=choice, target=target)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", [F64, I32, BF16])
def test_epilogues_of_types(choice, dtype):
    def function(a, b, bias, residual):
        return (a @ b + bias, (a @ b + bias).relu() - residual, (a @ b).to(F32) * 0.5, (a @ b).to(I32))

    inputs = [values(dtype, *s, seed=k) for k, s in enumerate([(15, 33), (33, 17), (17,), (15, 17)])]
    if dtype == BF16:
        # Small integers, of which bf16 has every sum: truncation knows no tolerance.
        inputs = [values(I32, *t.shape, seed=k).clamp(-1, 1).to(BF16) for k, t in enumerate(inputs)]
    check(function, *inputs, choice=choice, wide=lambda *args: function(*args))


@pytest.mark.parametrize("choice", CHOICES)
def test_casts_behind(choice):
    def function(a, b):
        p = a @ b
        return p.to(BF16).to(F32), p.double().float(), (p > 0).to(I32), (p * 0 + 3).to(I8)

    # Small integers: all sums are exact, in bf16, too.
    inputs = [values(I32, 15, 33).clamp(-1, 1).to(F32), values(I32, 33, 17, seed=1).clamp(-1, 1).to(F32)]
    check(function, *inputs, choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_several_results(choice):
    """What comes before an activation is returned, too, and a product has readers that are fused and others."""

    def function(a, b, bias, residual):
        before = torch.addmm(bias, a, b)
        product = a @ b
        return (
            before,
            F.gelu(before),
            product,
            product + residual,
            product.relu() * 2,
            product.sum(0),
            product.t() @ residual,
        )

    for m, n in [(15, 17), (130, 64)]:
        inputs = [values(F32, *s, seed=k) for k, s in enumerate([(m, 33), (33, n), (n,), (m, n)])]
        check(function, *inputs, choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_prologues(choice):
    def function(a, b, scale, small, half):
        return (
            (a * 2) @ b,
            a @ (b + 1),
            (a.relu() + 1) @ (b * scale),
            a.exp() @ b,
            small.to(b.dtype) @ b,
            half.to(b.dtype) @ b,
            a @ half.t().to(b.dtype),
            (a - a.mean(1, keepdim=True)) @ b,
            a.softmax(-1) @ b,
            torch.where(a > 0, a, 0.0) @ b,
            torch.arange(33, dtype=b.dtype).expand(15, 33) @ b,
            torch.tril(a) @ b,
        )

    sizes = [(15, 33), (33, 17), (33, 1)]
    inputs = [values(F32, *s, seed=k) for k, s in enumerate(sizes)] + [values(I8, 15, 33), values(BF16, 15, 33)]
    for target in ("auto", PORTABLE):
        check(function, *inputs, choice=choice, target=target)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("target", ["auto", PORTABLE])
def test_split_rows(choice, target):
    """Linear layers flatten batches and sequences to rows, and split them again."""

    def function(x, w, b, residual, v, position):
        y = F.gelu(F.linear(x, w, b))
        return (
            y + residual,
            F.linear(y, v) + x,
            F.linear(x, w, b) * position,
            F.linear(x, w).view(*x.shape[:2], 4, -1).transpose(1, 2) * 2,
            F.linear(x, w).view(*x.shape[:2], 4, -1).transpose(1, 2)
            @ residual[:, None, :, :].transpose(2, 3)[:, :, :8],
            F.linear(x, w, b).flatten(0, 1).relu(),
            F.linear(x, w, b)[:, 0] + 1,
        )

    for batch, length in [(8, 16), (3, 5), (1, 14), (2, 64)]:
        shapes = [(batch, length, 33), (32, 33), (32,), (batch, length, 32), (33, 32), (length, 1)]
        inputs = [values(F32, *s, seed=k) for k, s in enumerate(shapes)]
        check(function, *inputs[:6], choice=choice, target=target)


@pytest.mark.parametrize("choice", CHOICES)
def test_split_rows_of_symbolic_sizes(choice):
    torch_accel.reset_reports()

    def function(x, w, b, residual):
        return F.gelu(F.linear(x, w, b)) + residual, F.linear(x, w, b)

    w, b = values(F32, 33, 64, seed=1), values(F32, 33, seed=2)
    compiled = torch.compile(function, backend="accel", fullgraph=True, options={"contractions": choice})
    for batch, length in [(3, 5), (8, 16), (2, 13), (5, 50)]:
        x, residual = values(F32, batch, length, 64), values(F32, batch, length, 33, seed=3)
        for t in (x, residual):
            torch._dynamo.mark_dynamic(t, [0, 1])
        compare(function, [x, w, b, residual], compiled, name=f"{batch} {length}")
    assert_native()
    assert len(torch_accel.reports()) == 1


def test_part_of_split_rows():
    """Of the rows some are read, as many as a third tensor has."""

    def function(x, w, t):
        n = t.shape[0]
        return (x.flatten(0, 1) @ w)[: n * 8].view(n, 8, -1) * 2

    compiled = torch.compile(function, backend="accel", fullgraph=True, options={"contractions": "own"})
    for size, part in [(5, 3), (50, 3), (7, 6)]:
        x, w, t = values(F32, size, 8, 33), values(F32, 33, 64, seed=1), values(F32, part)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(t, 0)
        compare(function, [x, w, t], compiled)


@pytest.mark.parametrize("choice", CHOICES)
def test_shared_operands(choice):
    def function(a, b, c, square):
        up, gate = a @ b, a @ c
        return F.silu(gate) * up, (a * 2) @ b, a @ a.t(), square @ square, square @ square @ square, a @ b + a @ c

    for m, n in [(15, 17), (300, 64)]:
        inputs = [values(F32, m, 33), values(F32, 33, n, seed=1), values(F32, 33, n, seed=2), values(F32, 20, 20)]
        check(function, *inputs, choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_layers(choice):
    """Products one behind the other."""

    def function(x, u, v):
        for _ in range(3):
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), u)), v)
        return x

    check(function, values(F32, 2, 15, 33), values(F32, 64, 33, seed=1), values(F32, 33, 64, seed=2), choice=choice)


@pytest.mark.parametrize("choice", CHOICES)
def test_gradients(choice):
    def gradients(x, w, b):
        leaves = [t.detach().requires_grad_() for t in (x, w, b)]
        out = run(*leaves)
        out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out))
        return [out.detach(), *(t.grad for t in leaves)]

    def function(x, w, b):
        return F.gelu(F.linear(x, w, b))

    inputs = [values(F32, 2, 15, 33), values(F32, 17, 33, seed=1), values(F32, 17, seed=2)]
    run = torch.compile(function, backend="accel", fullgraph=True, options={"contractions": choice})
    got = gradients(*inputs)
    assert_native()
    run = function
    want, truth = gradients(*inputs), gradients(*[t.double() for t in inputs])
    for g, w, t in zip(got, want, truth, strict=True):
        assert_near(g, w, t)


# ---- What the report says


def test_an_epilogue_is_part_of_the_kernel():
    with torch.no_grad():
        (graph,) = torch_accel.explain(
            lambda x, y, b: F.gelu(x @ y + b), values(F32, 64, 64), values(F32, 64, 64), values(F32, 64)
        ).graphs
    (kernel,) = graph.kernels
    assert kernel["class"] == "contraction"
    assert kernel["choice"]
    assert "aten.gelu.default" in kernel["ops"]


def test_rows_that_views_split_are_fused_over():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(40, 70), torch.nn.Linear(70, 40)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(x)))

    block = Block().requires_grad_(False)
    check(block, values(F32, 8, 16, 40), choice="auto", wide=lambda x: copy.deepcopy(block).double()(x))
    (report,) = torch_accel.reports()
    assert sum(kernel["launches"] for kernel in report.kernels if not kernel["once"]) == 2


def test_the_library_by_option():
    check(torch.mm, values(F32, 64, 64), values(F32, 64, 64, seed=1), choice="library")
    (call,) = library_calls()
    assert "by option" in call["reason"]


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", PORTABLE])
def test_narrower_processors(target):
    check(lambda x, y: F.gelu(x @ y + y[0]), values(F32, 29, 33), values(F32, 33, 50), target=target)
    check(torch.mm, values(BF16, 37, 200), values(BF16, 200, 50), target=target)


def test_half_precision_without_instructions_for_it_is_ours_by_choice():
    check(torch.mm, values(BF16, 64, 96), values(BF16, 96, 64), choice="auto", target=PORTABLE)
    assert not library_calls()


def test_vectors():
    a, v, w = values(F32, 30, 40), values(F32, 40), values(F32, 40, seed=1)
    check(lambda x, y, z: (x @ y, y.dot(z)), a, v, w, choice="auto")
