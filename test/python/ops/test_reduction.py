"""Every reduction that has a lowering, against eager.

One graph computes all reductions of a group. Inputs hold NaN, infinities and ties, have dimensions of size 0 and 1 and
sizes that are no multiple of a vector's width, and lie transposed, with gaps, or broadcast in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from compare import ALL, BF16, BOOL, F16, F32, F64, FLOATS, I8, I32, I64, U8, Case, check, values
from torch import Tensor

pytestmark = pytest.mark.compiler

INF, NAN = math.inf, math.nan


DIMS = (0, 1, -1, (0, 2), (-1, 1), (0, 1, 2))


def along(name: str, op: Callable[..., Tensor], dims: tuple = DIMS) -> dict[str, Case]:
    """The op over each of these dimensions, which go, or stay with size 1."""
    return {
        f"{name}({dim}, keepdim={keep})": lambda x, *_, dim=dim, keep=keep: op(x, dim, keepdim=keep)
        for dim in dims
        for keep in ((False, True) if dim in (1, (0, 2), None) else (False,))
    }


SUMS = along("sum", torch.sum) | {
    "sum": torch.sum,
    "sum(())": lambda x: torch.sum(x, ()),
    "sum(dtype=f64)": lambda x: torch.sum(x, dtype=F64),
    "sum(0, dtype=f32)": lambda x: torch.sum(x, 0, dtype=F32),
    "sum(dtype=i32)": lambda x: torch.sum(x, 0, dtype=I32),
    "count_nonzero": torch.count_nonzero,
    "count_nonzero(1)": lambda x: torch.count_nonzero(x, 1),
    "count_nonzero(0, 2)": lambda x: torch.count_nonzero(x, (0, 2)),
    "prod": torch.prod,
    "prod(dtype=f64)": lambda x: torch.prod(x, dtype=F64),
}
PRODUCTS = along("prod", torch.prod, (0, 1, -1))
MEANS = along("mean", torch.mean) | {"mean": torch.mean, "mean(dtype=f32)": lambda x: torch.mean(x, 1, dtype=F32)}
EXTREMES = (
    along("amax", torch.amax)
    | along("amin", torch.amin)
    | {"max": torch.max, "min": torch.min, "amax(())": torch.amax, "amin(())": torch.amin}
)
POSITIONS = (
    along("max", torch.max, (0, 1, -1))
    | along("min", torch.min, (0, 1, -1))
    | along("argmax", torch.argmax, (0, 1, -1, None))
    | along("argmin", torch.argmin, (0, 1, -1, None))
)
TRUTHS = along("any", torch.any) | along("all", torch.all) | {"any": torch.any, "all": torch.all}
VARIANCES = {
    f"{op.__name__}({dim}, {correction}, keepdim={keep})": lambda x, op=op, d=dim, c=correction, k=keep: op(
        x, d, correction=c, keepdim=k
    )
    for op in (torch.var, torch.std, torch.var_mean, torch.std_mean)
    for dim, correction, keep in ((0, 1, False), (-1, 0, True), ((0, 2), 1, False), (None, 2.5, False), (1, None, True))
}
NORMS = {
    f"norm({order}, {dim}, keepdim={keep})": lambda x, order=order, dim=dim, keep=keep: torch.linalg.vector_norm(
        x, order, dim, keep
    )
    for order in (2, 1, INF, -INF, 0, 3, 0.5)
    for dim, keep in ((None, False), (-1, True), ((0, 1), False))
} | {
    "norm(dtype=f64)": lambda x: torch.linalg.vector_norm(x, 2, 0, dtype=F64),
    "norm": torch.norm,
    "norm(p=1, dim=1)": lambda x: torch.norm(x, p=1, dim=1),
}
LOGSUMEXPS = along("logsumexp", torch.logsumexp)

SIZES = (5, 37, 19)


@pytest.mark.parametrize("dtype", ALL)
def test_sums(dtype):
    # Products of many numbers overflow, so they are of few.
    x = values(dtype, *SIZES)
    check({name: case for name, case in SUMS.items() if not name.startswith("prod")}, x)
    check(PRODUCTS | {n: c for n, c in SUMS.items() if n.startswith("prod")}, values(dtype, 3, 4, 2))


@pytest.mark.parametrize("dtype", FLOATS)
def test_means(dtype):
    check(MEANS, values(dtype, *SIZES))


@pytest.mark.parametrize("dtype", ALL)
def test_extremes(dtype):
    check(EXTREMES, values(dtype, *SIZES), exact=True)


@pytest.mark.parametrize("dtype", ALL)
def test_positions(dtype):
    # Small integers: each row has many ties, of which the first counts.
    check(POSITIONS, values(BOOL, *SIZES) if dtype == BOOL else values(I8, *SIZES).abs().to(dtype))


@pytest.mark.parametrize("dtype", [U8, I8, I32, I64])
def test_extremes_reach_the_ends_of_integer_dtypes(dtype):
    info = torch.iinfo(dtype)
    ends = torch.tensor([[info.min, info.min], [info.max, info.max], [info.min, info.max]], dtype=dtype)
    cases = {
        "amax": lambda x: x.amax(1),
        "amin": lambda x: x.amin(1),
        "max": lambda x: x.max(1),
        "min": lambda x: x.min(1),
    }
    check(cases, ends)


@pytest.mark.parametrize("dtype", ALL)
def test_truths(dtype):
    x = values(dtype, *SIZES)
    x[:, 3:20] = 0
    x[2] = 1
    check(TRUTHS, x)


def test_truths_over_no_dimension_reduce_nothing():
    check({"any": lambda x: torch.any(x, ()), "all": lambda x: torch.all(x, ())}, values(I64, 3, 4))


@pytest.mark.parametrize("dtype", FLOATS)
def test_variances(dtype):
    check(VARIANCES, values(dtype, *SIZES) + 3)


def test_variances_of_too_few_elements():
    cases = {
        f"{name}(correction={c})": lambda x, name=name, c=c: getattr(torch, name)(x, 1, correction=c)
        for name in ("var", "std")
        for c in (0, 1, 2, 3)
    }
    check(cases, values(F32, 4, 1))
    check(cases, values(F32, 4, 2))
    check(cases, values(F32, 4, 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms(dtype):
    check(NORMS, values(dtype, *SIZES))


@pytest.mark.parametrize("dtype", [*FLOATS, I64])
def test_logsumexp(dtype):
    check(LOGSUMEXPS, values(dtype, *SIZES) * 5)


def test_large_values_do_not_overflow():
    check(LOGSUMEXPS, values(F32, *SIZES) * 1e4)
    # A sum in f16 would end at 65504.
    check({"sum": lambda x: x.sum((0, 1, 2), dtype=F32), "mean": lambda x: x.mean()}, values(F16, *SIZES).abs() * 100)
    check({"var": lambda x: x.var(-1), "std_mean": lambda x: torch.std_mean(x, 0)}, values(F32, *SIZES) + 1e4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity(dtype):
    x = values(dtype, 8, 21, 3)
    x[1, 4], x[2, 7], x[3, 9], x[4], x[5], x[6, 3], x[6, 8] = NAN, INF, -INF, -INF, INF, INF, -INF
    x[7, 2], x[7, 11] = NAN, NAN
    check(EXTREMES | POSITIONS, x, exact=True)
    norms = {n: c for n, c in NORMS.items() if "keepdim=False" not in n}
    # NaN and infinity have no integer values.
    sums = {n: c for n, c in SUMS.items() if "i32" not in n}
    check(sums | MEANS | LOGSUMEXPS | TRUTHS | norms | {"var": lambda x: x.var(1)}, x)


def test_aminmax():
    x = values(F32, *SIZES)
    x[2, 5] = NAN
    cases = {
        "aminmax": torch.aminmax,
        "aminmax(1)": lambda x: torch.aminmax(x, dim=1),
        "aminmax(-1, keepdim)": lambda x: torch.aminmax(x, dim=-1, keepdim=True),
    }
    check(cases, x, exact=True)


EVERYTHING = SUMS | MEANS | EXTREMES | POSITIONS | TRUTHS | VARIANCES | NORMS | LOGSUMEXPS
# A third of them, for what concerns all alike.
SOME = dict(list(EVERYTHING.items())[::3])


def test_sizes_of_one():
    check(EVERYTHING, values(F32, 1, 9, 1))
    check(SOME, values(F32, 1, 1, 1))


def test_rank_zero():
    names = "sum mean prod max amin any argmax var std_mean norm aminmax"
    cases = {name: getattr(torch, name) for name in names.split()} | {
        "sum(0)": lambda x: x.sum(0, keepdim=True),
        "max(0)": lambda x: x.max(0),
        "argmin(-1)": lambda x: x.argmin(-1),
        "logsumexp": lambda x: x.logsumexp(0),
    }
    check(cases, torch.tensor(2.5))
    check(cases, torch.tensor(7))


def test_no_elements():
    cases = SUMS | MEANS | TRUTHS | VARIANCES | LOGSUMEXPS
    check(cases, torch.empty(3, 0, 5))
    check(cases, torch.empty(0, 2, 0))
    # Over a dimension that has elements, of a tensor that has none.
    check(EXTREMES | POSITIONS, torch.empty(3, 0, 5))


@pytest.mark.parametrize("op", [torch.amax, torch.argmin, lambda x, d: x.max(d), lambda x, d: torch.aminmax(x, dim=d)])
def test_there_is_no_extreme_of_nothing(op):
    x = torch.empty(3, 0)
    with pytest.raises((IndexError, RuntimeError)):
        op(x, 1)
    with pytest.raises((IndexError, RuntimeError)):
        torch.compile(lambda x: op(x, 1), backend="accel")(x)


@pytest.mark.parametrize(
    "layout",
    [
        lambda: values(F32, 19, 37, 5).permute(2, 1, 0),
        lambda: values(F32, 10, 37, 57)[::2, :, 1::3],
        lambda: values(F32, 5, 1, 19).expand(5, 37, 19),
        lambda: values(F32, 1, 37, 1).expand(5, 37, 19),
    ],
)
def test_layouts(layout):
    check(SOME, layout())


@pytest.mark.parametrize("dtype", [F32, BF16, I64])
def test_dynamic(dtype):
    check(EVERYTHING if dtype == F32 else SOME, values(dtype, *SIZES), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x):
        return x.sum(1), x.mean(0), x.var(-1), x.amax(1), x.argmax(0), x.argmax(), torch.logsumexp(x, 1), x.std()

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((5, 37), (64, 3), (17, 128)):
            x = values(F32, *sizes)
            for got, want in zip(compiled(x), f(x), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


# Few results of many elements: two reductions. The counts divide by the pieces, or leave one element or a prime over.
LONG = [(1 << 18,), (262145,), (2, 150011), (3, 70001, 2), (1009, 401), (5, 300, 200), (200000, 3), (70000, 5)]


@pytest.mark.parametrize("sizes", LONG)
def test_long_reductions(sizes):
    # Sums near zero have no relative error to speak of.
    x = values(F32, *sizes) + 1
    check({n: c for n, c in SOME.items() if "prod" not in n and n not in POSITIONS}, x)
    # Ties in several pieces, of which the first counts.
    check(POSITIONS | EXTREMES | TRUTHS, (x * 2).round() + 0.0, exact=True)


@pytest.mark.parametrize("dtype", [F64, BF16, I32, U8, BOOL])
def test_dtypes_of_long_reductions(dtype):
    x = values(dtype, 3, 100003)
    check({n: c for n, c in SUMS.items() if "prod" not in n} | TRUTHS | EXTREMES | POSITIONS, x)
    ones = torch.ones(300007, dtype=dtype)
    ones[123457] = 3 if dtype != BOOL else 0
    check({"prod": torch.prod, "sum": torch.sum, "all": torch.all}, ones)


@pytest.mark.parametrize("at", [0, 131071, 262144])
def test_nan_in_a_long_reduction(at):
    x = values(F32, 262145)
    x[at] = NAN
    x[200000] = NAN
    x[5] = INF
    check({n: c for n, c in (EXTREMES | POSITIONS).items() if "1" not in n}, x, exact=True)
    check({"sum": torch.sum, "var": torch.var, "any": torch.any}, x)


def test_long_reductions_of_computed_values():
    x, y = values(F32, 400, 1001), values(F32, 400, 1)

    def several(x, y):
        e = (x * y).exp()
        return e, e.sum(), (x - x.mean()).square().mean(), (x.t() + 1).sum(), (x[:, ::2] * y).amax(), x.softmax(0).sum()

    check({"several": several}, x, y)
    check({"rows": lambda x, y: torch.softmax(x.reshape(4, -1), 1)}, x, y)
    check({"dynamic": several}, x, y, dynamic=True)


def test_one_compilation_serves_short_and_long():
    def f(x):
        return x.sum(), x.argmax(), x.var(), x.amin(), (x * x).mean(0)

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((2, 37), (300000, 2), (32768, 3), (512, 1024)):
            x = values(F32, *sizes) + 1
            for got, want in zip(compiled(x), f(x), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["auto", "cpu:x86-64-v3", "cpu:x86-64-v2"])
@pytest.mark.parametrize("dtype", [F32, F64, I32])
def test_rows_that_share_an_operand(dtype, target):
    """Weighted sums over a middle dimension: rows done together read a weight once, and the last tile is shorter."""

    def windows(x, k):
        return (x.unfold(1, 3, 1) * k.t()).sum(-1) + 1

    compiled = torch.compile(windows, backend="accel", dynamic=False, options={"target": target})
    for rows, columns, lanes in [(4, 3, 5), (2, 9, 16), (3, 13, 33), (1, 15, 64), (2, 19, 100), (5, 2 + 8, 32)]:
        x, k = values(dtype, rows, columns, lanes), values(dtype, 3, lanes, seed=1)
        torch.testing.assert_close(compiled(x, k), windows(x, k))
