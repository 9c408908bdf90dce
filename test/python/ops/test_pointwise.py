"""Every pointwise overload that has a lowering, against eager: values, dtypes, sizes and strides, and no fallback.

One graph computes all ops of a group on the same inputs, which hold NaN, infinities, signed zeros, denormals and the
dtype's extremes next to ordinary numbers. Two operands meet by broadcasting, so each value meets each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from compare import (
    ALL,
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    FLOATS,
    I8,
    I32,
    I64,
    INTEGERS,
    U8,
    Case,
    assert_native,
    assert_same,
    check,
    values,
)
from torch import Tensor

import torch_accel

pytestmark = pytest.mark.compiler

aten = torch.ops.aten
INF, NAN = math.inf, math.nan


def numbers(dtype: torch.dtype, count: int, seed: int = 0) -> Tensor:
    """A vector with the dtype's special values first."""
    if dtype == BOOL:
        return values(BOOL, count, seed=seed)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        special = torch.tensor([0, 1, 2, 3, 7, info.max, info.min, info.max - 1, info.min + 1], dtype=dtype)
        return torch.cat([special, values(dtype, count - len(special), seed=seed)])
    info = torch.finfo(dtype)
    special = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 6.0, 19.5, 20.5, -88.0]
    special += [info.max, info.min, info.tiny, -info.tiny, info.smallest_normal / 4, info.eps, 1 + info.eps]
    return torch.cat([torch.tensor(special, dtype=F64), values(F64, count - len(special), seed=seed) * 2]).to(dtype)


def named(function: Callable[[str], Case], names: str) -> dict[str, Case]:
    return {name: function(name) for name in names.split()}


def unary(names: str) -> dict[str, Case]:
    return named(lambda name: lambda x, *_: getattr(aten, name).default(x), names)


def binary(names: str, overload: str = "default") -> dict[str, Case]:
    return named(lambda name: lambda x, y, *_: getattr(getattr(aten, name), overload)(x, y), names)


def with_numbers(names: str, overload: str, *values) -> dict[str, Case]:
    """The op of a tensor with each of the numbers."""
    return {
        f"{name}.{overload}({value})": lambda x, *_, name=name, value=value: getattr(getattr(aten, name), overload)(
            x, value
        )
        for name, value in itertools.product(names.split(), values)
    }


# ---- one operand

ELEMENTARY = unary(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf erfc sigmoid deg2rad rad2deg sinc special_entr logit"
)
KEEPING = unary("neg abs sign sgn square floor ceil trunc round frac relu nan_to_num")
PREDICATES = unary("isnan isinf isposinf isneginf isfinite signbit logical_not bitwise_not")


@pytest.mark.parametrize("dtype", ALL)
def test_elementary_functions(dtype):
    check(ELEMENTARY, numbers(dtype, 59))


def units_off(got: Tensor, truth: Tensor) -> Tensor:
    """The error in units in the last place of f32."""
    _, exponent = torch.frexp(truth)
    unit = torch.ldexp(torch.ones_like(truth), (exponent - 1).clamp(min=-126) - 23)
    return torch.where((got == truth.float()) | (got.isnan() & truth.isnan()), 0.0, (got.double() - truth).abs() / unit)


@pytest.mark.parametrize(("name", "limit"), [("exp", 1.5), ("tanh", 2.0), ("erf", 2.0)])
def test_inline_functions_are_accurate_over_all_floats(name, limit):
    # Every 1031st bit pattern, the special values, and the neighbourhoods of where the functions change their ways.
    x = torch.arange(-(2**31), 2**31, 1031, dtype=I64).to(I32).view(F32)
    near = torch.tensor(
        [0.9, 0.625, 9.05, 3.95, 0.34657, 88.722836, 87.33655, 103.2789, 103.97208, 104.0, 1e-38, 1.4e-45]
    )
    near = (near.view(I32)[:, None] + torch.arange(-500, 500, dtype=I32)).flatten().view(F32)
    x = torch.cat([x, near, -near, numbers(F32, 59)])
    function = getattr(torch, name)
    torch_accel.reset_reports()
    got = torch.compile(lambda t: function(t), backend="accel")(x)
    assert_native()
    off = units_off(got, function(x.double()))
    assert off.max() <= limit, f"{off.max()} units at {x[off.argmax()]}"
    if name != "exp":
        number = ~x.isnan()
        assert (got.signbit() == x.signbit())[number].all()


@pytest.mark.parametrize("dtype", ALL)
def test_exact_functions(dtype):
    check(KEEPING, numbers(dtype, 59), exact=True)


@pytest.mark.parametrize("dtype", ALL)
def test_predicates(dtype):
    check(PREDICATES, numbers(dtype, 59))


def test_rounding_is_to_even_and_keeps_the_sign_of_zero():
    halves = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.2, -0.2, 8388609.0, -0.0])
    check(unary("round floor ceil trunc"), halves, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_options_of_one_operand(dtype):
    cases = {f"round.decimals({d})": lambda x, d=d: aten.round.decimals(x, decimals=d) for d in (0, 1, 2, -1)} | {
        "logit(eps)": lambda x: aten.logit.default(x, 0.125),
        "nan_to_num(...)": lambda x: aten.nan_to_num.default(x, 3.0, 4.0, -5.0),
        "nan_to_num(nan)": lambda x: aten.nan_to_num.default(x, None, NAN),
    }
    check(cases, values(dtype, 59))


# ---- two operands

SUMS = binary("add sub rsub mul", "Tensor") | binary("maximum minimum fmax fmin")
MULTIPLES = {
    "add(alpha)": lambda x, y: aten.add.Tensor(x, y, alpha=3),
    "sub(alpha)": lambda x, y: aten.sub.Tensor(x, y, alpha=-2),
    "rsub(alpha)": lambda x, y: aten.rsub.Tensor(x, y, alpha=3),
}
FLOAT_MULTIPLES = {
    "add(alpha)": lambda x, y: aten.add.Tensor(x, y, alpha=0.3),
    "sub(alpha)": lambda x, y: aten.sub.Tensor(x, y, alpha=-1.7),
    "rsub.Scalar(alpha)": lambda x, y: aten.rsub.Scalar(x, 1.5, 0.3),
}
QUOTIENTS = binary("div", "Tensor") | {
    f"div({mode})": lambda x, y, mode=mode: aten.div.Tensor_mode(x, y, rounding_mode=mode)
    for mode in (None, "trunc", "floor")
}
FLOAT_QUOTIENTS = binary("floor_divide") | binary("fmod remainder", "Tensor")
FUNCTIONS_OF_TWO = (
    binary("atan2 hypot logaddexp logaddexp2 special_xlog1py heaviside")
    | binary("copysign xlogy", "Tensor")
    | binary("pow", "Tensor_Tensor")
)
COMPARISONS = binary("eq ne lt le gt ge", "Tensor")
LOGIC = binary("logical_and logical_or logical_xor")
BITS = binary("bitwise_and bitwise_or bitwise_xor", "Tensor")
SHIFTS = binary("__lshift__ __rshift__ bitwise_left_shift bitwise_right_shift", "Tensor")


def pair(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return numbers(dtype, 37).unsqueeze(1), numbers(dtype, 41, seed=1)


@pytest.mark.parametrize("dtype", ALL)
def test_sums_and_products(dtype):
    # Of two zeros the larger one is either, so its sign is not compared.
    check(SUMS, *pair(dtype))
    # A multiple of an extreme overflows where eager's fused multiply-add does not.
    if dtype != BOOL:
        check(MULTIPLES, values(dtype, 37, 41), values(dtype, 37, 41, seed=1))
    if dtype.is_floating_point:
        check(FLOAT_MULTIPLES, values(dtype, 37, 41), values(dtype, 37, 41, seed=1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients(dtype):
    x, y = pair(dtype)
    check(binary("div", "Tensor"), x, y)
    # Eager's fmod is NaN where the quotient has more digits than the dtype, and its f16 and bf16 quotients are off by
    # units where they are large.
    y = y[((y.abs() > 0.01) & (y.abs() < 1e3)) | (y == 0) | y.isnan() | y.isinf()]
    x = torch.where((x.abs() < 1e3) | x.isinf() | x.isnan(), x, 7.5)
    check(QUOTIENTS | FLOAT_QUOTIENTS, x if dtype in (F32, F64) else values(dtype, 37, 1), y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divide_to_floats(dtype):
    check(binary("div", "Tensor"), *pair(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("divisor", [1, 3, 7, -1, -4])
def test_integers_divide_by_constants(dtype, divisor):
    cases = {
        f"div({mode})": lambda x, mode=mode: aten.div.Tensor_mode(x, divisor, rounding_mode=mode)
        for mode in ("trunc", "floor")
    } | {
        "floor_divide": lambda x: x // divisor,
        "floor_divide.Scalar": lambda x: aten.floor_divide.Scalar(x, divisor),
        "fmod.Scalar": lambda x: aten.fmod.Scalar(x, divisor),
        "remainder.Scalar": lambda x: aten.remainder.Scalar(x, divisor),
        "%": lambda x: x % divisor,
    }
    if dtype == U8 and divisor < 0:
        pytest.skip("the divisor has no value in u8")
    values = numbers(dtype, 59)
    if divisor == -1:
        values = values[values != torch.iinfo(dtype).min]  # its quotient has no value, and eager may trap
    check(cases, values)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two(dtype):
    check(FUNCTIONS_OF_TWO, *pair(dtype))


@pytest.mark.parametrize("dtype", ALL)
def test_comparisons_and_logic(dtype):
    check(COMPARISONS | LOGIC, *pair(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, BOOL])
def test_bits(dtype):
    check(BITS, *pair(dtype))
    if dtype == BOOL:
        return
    counts = torch.tensor([0, 1, 5, 7, 8, 15, 31, 32, 63, 64, -1, 100]).to(dtype)
    check(SHIFTS, numbers(dtype, 37).unsqueeze(1), counts)


# ---- a tensor and a number


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_with_numbers(dtype):
    cases = with_numbers("add sub mul div rsub", "Scalar", 0.3, 2, -1.5, True)
    cases |= with_numbers("eq ne lt le gt ge", "Scalar", 0.5, 3, -INF)
    cases |= with_numbers("add sub mul div", "Tensor", 0.3, 3)
    cases |= with_numbers("copysign", "Scalar", -1.0, 0)
    cases |= with_numbers("xlogy", "Scalar_Other", 0.7) | with_numbers("special_xlog1py", "other_scalar", 0.7)
    cases |= {
        "xlogy.Scalar_Self": lambda x: aten.xlogy.Scalar_Self(0.7, x),
        "special_xlog1py.self_scalar": lambda x: aten.special_xlog1py.self_scalar(0.7, x),
        "1 - x": lambda x: 1 - x,
        "1 / x": lambda x: 1 / x,
    }
    check(cases, numbers(dtype, 59))


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_floats(dtype):
    exponents = (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.7, -3.0, True)
    cases = with_numbers("pow", "Tensor_Scalar", *exponents)
    cases |= {f"pow.Scalar({b})": lambda x, b=b: aten.pow.Scalar(b, x) for b in (1, 2, 0.7, 0)}
    # Eager rounds x * x to bf16 before it multiplies again, and has no square root of -inf in f16.
    check(cases, numbers(dtype, 59) if dtype in (F32, F64) else values(dtype, 59))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_by_numbers(dtype):
    # A number is rounded to the tensor's dtype before, or not, as eager has it: the whole part would show it.
    cases = with_numbers("remainder fmod", "Scalar", 0.3, -2.0, 7) | {
        "remainder.Scalar_Tensor": lambda x: aten.remainder.Scalar_Tensor(7.3, x),
        "x // 0.3": lambda x: x // 0.3,
        "div.Scalar_mode": lambda x: aten.div.Scalar_mode(x, 0.3, rounding_mode="trunc"),
    }
    check(cases, values(dtype, 59))


@pytest.mark.parametrize("dtype", [*INTEGERS, BOOL])
def test_integers_with_numbers(dtype):
    cases = with_numbers("add sub mul rsub", "Scalar", 2, -3, True) | with_numbers("add mul", "Tensor", 0.5, 5)
    cases |= with_numbers("eq ne lt le gt ge", "Scalar", 2, 0.5, True) | with_numbers("div", "Scalar", 4, 0.3)
    cases |= with_numbers("bitwise_and bitwise_or bitwise_xor", "Scalar", 6, True)
    if dtype != BOOL:
        cases |= with_numbers("__lshift__ __rshift__", "Scalar", 3)
        cases |= with_numbers("bitwise_left_shift bitwise_right_shift", "Tensor_Scalar", 3, 64)
    cases |= with_numbers("pow", "Tensor_Scalar", 0, 1, 2, 3, 5, 0.5, 2.0)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        cases[f"{name}.Scalar_Tensor"] = lambda x, name=name: getattr(aten, name).Scalar_Tensor(6, x)
    check(cases, numbers(dtype, 59))


@pytest.mark.parametrize("dtype", ALL)
def test_bounds(dtype):
    cases = {
        "clamp": lambda x, y: aten.clamp.default(x, 1, 5),
        "clamp(min)": lambda x, y: aten.clamp.default(x, 2),
        "clamp(max)": lambda x, y: aten.clamp.default(x, None, 2),
        "clamp(reversed)": lambda x, y: aten.clamp.default(x, 5, 1),
        "clamp(real)": lambda x, y: aten.clamp.default(x, 0.5, 2.5),
        "clamp(nan)": lambda x, y: aten.clamp.default(x, NAN),
        "clamp.Tensor": lambda x, y: aten.clamp.Tensor(x, y, y + y),
        "clamp.Tensor(min)": lambda x, y: aten.clamp.Tensor(x, y),
        "clamp.Tensor(max)": lambda x, y: aten.clamp.Tensor(x, None, y),
        "clamp_min": lambda x, y: aten.clamp_min.default(x, 3),
        "clamp_max": lambda x, y: aten.clamp_max.default(x, 3),
        "clamp_min.Tensor": lambda x, y: aten.clamp_min.Tensor(x, y),
        "clamp_max.Tensor": lambda x, y: aten.clamp_max.Tensor(x, y),
    }
    check(cases, *pair(dtype))


# ---- three operands


@pytest.mark.parametrize("dtype", [*FLOATS, I64, I32, U8])
def test_three_operands(dtype):
    cases = {
        "addcmul": lambda x, y, z: aten.addcmul.default(x, y, z),
        "addcmul(value)": lambda x, y, z: aten.addcmul.default(x, y, z, value=3),
        "addcdiv": lambda x, y, z: aten.addcdiv.default(x, y, z),
        "addcdiv(value)": lambda x, y, z: aten.addcdiv.default(x, y, z, value=0.3),
        "lerp(0.3)": lambda x, y, z: aten.lerp.Scalar(x, y, 0.3),
        "lerp(0.9)": lambda x, y, z: aten.lerp.Scalar(x, y, 0.9),
        "lerp.Tensor": lambda x, y, z: aten.lerp.Tensor(x, y, z),
    }
    check(cases, values(dtype, 5, 1, 17), values(dtype, 5, 7, 17, seed=1), values(dtype, 7, 1, seed=2))


@pytest.mark.parametrize("dtype", ALL)
def test_choices(dtype):
    cases = {
        "where": lambda m, x, y: aten.where.self(m, x, y),
        "where.ScalarOther": lambda m, x, y: torch.where(m, x, 1),
        "where.ScalarSelf": lambda m, x, y: torch.where(m, 0, y),
        "where.Scalar": lambda m, x, y: torch.where(m, 1.0, -INF),
        "masked_fill": lambda m, x, y: aten.masked_fill.Scalar(x, m, 1),
        "masked_fill(inf)": lambda m, x, y: aten.masked_fill.Scalar(x, m, -INF),
        "masked_fill.Tensor": lambda m, x, y: aten.masked_fill.Tensor(x, m, y[3]),
    }
    x, y = pair(dtype)
    check(cases, values(BOOL, 37, 41), x, y, exact=True)


# ---- activations

ACTIVATIONS = unary(
    "relu leaky_relu gelu silu sigmoid hardsigmoid hardswish hardtanh elu celu softplus mish softshrink hardshrink tanh"
) | {
    "relu6": lambda x, *_: torch.nn.functional.relu6(x),
    "selu": lambda x, *_: torch.selu(x),
    "gelu(tanh)": lambda x, *_: aten.gelu.default(x, approximate="tanh"),
    "leaky_relu(slope)": lambda x, *_: aten.leaky_relu.default(x, 0.3),
    "hardtanh(bounds)": lambda x, *_: aten.hardtanh.default(x, -2, 0.3),
    "elu(...)": lambda x, *_: aten.elu.default(x, 0.3, 1.7, 0.9),
    "celu(alpha)": lambda x, *_: aten.celu.default(x, 0.3),
    "softplus(...)": lambda x, *_: aten.softplus.default(x, 0.3, 4),
    "softshrink(lambda)": lambda x, *_: aten.softshrink.default(x, 0.25),
    "hardshrink(lambda)": lambda x, *_: aten.hardshrink.default(x, 0.3),
    "threshold": lambda x, *_: aten.threshold.default(x, 0.3, 7),
    "log_sigmoid": lambda x, *_: aten.log_sigmoid_forward.default(x)[0],
    "log_sigmoid(buffer)": lambda x, *_: aten.log_sigmoid_forward.default(x)[1],
    "prelu": lambda x, w: aten._prelu_kernel.default(x, w),
}

BACKWARDS = {
    "gelu": lambda g, x: aten.gelu_backward.default(g, x),
    "gelu(tanh)": lambda g, x: aten.gelu_backward.default(g, x, approximate="tanh"),
    "silu": lambda g, x: aten.silu_backward.default(g, x),
    "sigmoid": lambda g, x: aten.sigmoid_backward.default(g, x),
    "tanh": lambda g, x: aten.tanh_backward.default(g, x),
    "threshold": lambda g, x: aten.threshold_backward.default(g, x, 0.3),
    "hardtanh": lambda g, x: aten.hardtanh_backward.default(g, x, -1, 0.3),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward.default(g, x, 0.3, False),
    "elu": lambda g, x: aten.elu_backward.default(g, 0.3, 1.7, 0.9, False, x),
    "elu(result)": lambda g, x: aten.elu_backward.default(g, 0.3, 1.7, 0.9, True, x),
    "hardswish": lambda g, x: aten.hardswish_backward.default(g, x),
    "hardsigmoid": lambda g, x: aten.hardsigmoid_backward.default(g, x),
    "softplus": lambda g, x: aten.softplus_backward.default(g, x, 0.3, 4),
    "mish": lambda g, x: aten.mish_backward.default(g, x),
    "softshrink": lambda g, x: aten.softshrink_backward.default(g, x, 0.3),
    "hardshrink": lambda g, x: aten.hardshrink_backward.default(g, x, 0.3),
    "logit": lambda g, x: aten.logit_backward.default(g, x),
    "logit(eps)": lambda g, x: aten.logit_backward.default(g, x, 0.125),
    "prelu(self)": lambda g, x: aten._prelu_kernel_backward.default(g, x, g)[0],
    "prelu(weight)": lambda g, x: aten._prelu_kernel_backward.default(g, x, g)[1],
    "log_sigmoid": lambda g, x: aten.log_sigmoid_backward.default(g, x, (-x.abs()).exp()),
    "native_dropout": lambda g, x: aten.native_dropout_backward.default(g, x > 0, 1.25),
}


@pytest.mark.parametrize("dtype", [*FLOATS, I64, I32, U8])
def test_activations(dtype):
    x = numbers(dtype, 59)
    # Eager's vectors have NaN for the GELU of infinity, where its scalars and the other dtypes have infinity.
    gelus = {name: case for name, case in ACTIVATIONS.items() if "gelu" in name}
    check({name: case for name, case in ACTIVATIONS.items() if name not in gelus}, x, values(dtype, 59, seed=1))
    if dtype.is_floating_point:
        torch._dynamo.reset()
        check(gelus, x[~x.isinf()])


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_backward(dtype):
    x = numbers(dtype, 59)
    # Eager's kernels differ by dtype in what becomes of a NaN.
    check(BACKWARDS, values(dtype, 37, 59), (x if dtype == F32 else x.nan_to_num(0.7, INF, -INF)).expand(37, 59))


# ---- casts and copies


@pytest.mark.parametrize("dtype", ALL)
def test_casts(dtype):
    targets = ALL
    cases = {f"_to_copy({to})": lambda x, to=to: aten._to_copy.default(x, dtype=to) for to in targets}
    cases |= {
        f"convert({to})": lambda x, to=to: torch.ops.prims.convert_element_type.default(x, to)
        for to in (F32, I64, BOOL)
    }
    # A float beyond the integer's range has no value there.
    x = numbers(dtype, 59) if not dtype.is_floating_point else values(dtype, 59) * 20
    check(cases, x, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_casts_of_special_floats(dtype):
    check({str(to): lambda x, to=to: x.to(to) for to in (*FLOATS, BOOL)}, numbers(dtype, 59), exact=True)


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_a_round_trip_stays_rounded(dtype):
    check({"round trip": lambda x: x.to(dtype).to(F32) + 0.0}, values(F32, 59), exact=True)


def test_copies():
    cases = {
        "clone": lambda x, y: aten.clone.default(x),
        "clone(format)": lambda x, y: aten.clone.default(x, memory_format=torch.channels_last),
        "clone then add": lambda x, y: aten.clone.default(x) + 1,
        "to(format)": lambda x, y: x.to(memory_format=torch.channels_last, dtype=F64),
        "copy": lambda x, y: aten.copy.default(x, y),
        "copy(cast)": lambda x, y: aten.copy.default(x.to(I32), y * 10),
        "lift_fresh_copy": lambda x, y: aten.lift_fresh_copy.default(x) * 2,
        "detach": lambda x, y: x.detach() * 3,
        "alias": lambda x, y: aten.alias.default(x) * 4,
    }
    check(cases, values(F32, 2, 3, 5, 7), values(F32, 5, 1))


def test_a_copy_owns_its_memory():
    def copies(x):
        y = x + 1
        return x.clone(), y, y.clone()

    x = torch.arange(5.0)
    results = torch.compile(copies, backend="accel")(x)
    assert len({t.untyped_storage().data_ptr() for t in (x, *results)}) == 4


def test_a_copy_keeps_what_is_overwritten_later():
    def swap(x):
        old = x.clone()
        x.mul_(2)
        return old

    x = torch.arange(5.0)
    assert torch.equal(torch.compile(swap, backend="accel")(x), torch.arange(5.0))
    assert torch.equal(x, torch.arange(5.0) * 2)


# ---- types and layouts

RANKED_AND_NOT = [
    (F32, F64),
    (BF16, F32),
    (F16, I64),
    (I64, F32),
    (U8, I64),
    (U8, F64),
    (BOOL, I32),
    (BOOL, F16),
    (I8, U8),
]


@pytest.mark.parametrize(("first", "second"), RANKED_AND_NOT)
@pytest.mark.parametrize("rank", [0, 1])
def test_promotion(first, second, rank):
    cases = binary("add mul", "Tensor") | COMPARISONS | LOGIC | {"where": lambda x, y: torch.where(x > 0, x, y)}
    x = values(first, 17)
    y = values(second, 17, seed=1) if rank else torch.tensor(1.3).to(second)
    check(cases, x, y)
    check(cases, y, x)


REPRESENTATIVES = {
    "add": lambda x, y: x + y,
    "gelu": lambda x, y: torch.nn.functional.gelu(x) * y,
    "where": lambda x, y: torch.where(x > y, x, 0.5),
    "to": lambda x, y: x.to(F16),
    "isnan": lambda x, y: x.isnan(),
    "neg": lambda x, y: -y,
}

LAYOUTS = {
    "0-dim": lambda: (values(F32), values(F32, seed=1)),
    "0-dim with 1-dim": lambda: (values(F32), values(F32, 7, seed=1)),
    "empty": lambda: (values(F32, 0), values(F32, 0, seed=1)),
    "empty in the middle": lambda: (values(F32, 3, 0, 5), values(F32, 1, 5, seed=1)),
    "one": lambda: (values(F32, 1), values(F32, 1, 1, seed=1)),
    "odd": lambda: (values(F32, 3, 5, 19), values(F32, 5, 1, seed=1)),
    "prime": lambda: (values(F32, 1009), values(F32, 1009, seed=1)),
    "transposed": lambda: (values(F32, 19, 33).t(), values(F32, 33, 19, seed=1)),
    "both transposed": lambda: (values(F32, 19, 33).t(), values(F32, 19, 33, seed=1).t()),
    "permuted": lambda: (values(F32, 3, 5, 7, 11).permute(2, 0, 3, 1), values(F32, 7, 3, 11, 5, seed=1)),
    "sliced": lambda: (values(F32, 9, 40)[1::2, 3:36:3], values(F32, 4, 11, seed=1)),
    "expanded": lambda: (values(F32, 17, 1).expand(17, 23), values(F32, 23, seed=1).expand(17, 23)),
    "channels last": lambda: (
        values(F32, 2, 3, 5, 7).to(memory_format=torch.channels_last),
        values(F32, 3, 1, 1, seed=1),
    ),
    "offset": lambda: (values(F32, 37)[5:], values(F32, 33, seed=1)[1:]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    check(REPRESENTATIVES, *LAYOUTS[layout]())


def test_symbolic_sizes():
    cases = REPRESENTATIVES | {
        "x * size": lambda x, y: x * x.shape[0],
        "x + size": lambda x, y: x.to(I64) + x.shape[1],
        "size < x": lambda x, y: x < x.shape[0] + y.shape[-1],
        "masked": lambda x, y: x.masked_fill(y > 0, x.shape[0]),
    }
    compiled = torch.compile(lambda x, y: [case(x, y) for case in cases.values()], backend="accel", dynamic=True)
    for rows in (5, 18, 2):
        x, y = values(F32, rows, 7), values(F32, rows, 1, seed=1)
        for (name, case), result in zip(cases.items(), compiled(x, y), strict=True):
            assert_same(result, case(x, y), name)
    assert_native()
    assert len(torch_accel.reports()) == 1


# ---- what eager refuses


def fallen_back(function: Callable[..., Tensor], *inputs: Tensor) -> list[str]:
    torch_accel.reset_reports()
    want = function(*inputs)
    got = torch.compile(function, backend="accel", dynamic=False)(*inputs)
    torch.testing.assert_close(got, want)
    return [f["target"] for f in torch_accel.reports()[0].fallbacks]


def test_integer_division_by_a_tensor_runs_in_eager():
    x, y = torch.tensor([7, -7]), torch.tensor([2, 3])
    assert fallen_back(lambda x, y: x // y, x, y) == ["aten.floor_divide.default"]
    assert fallen_back(lambda x, y: x % y, x, y) == ["aten.remainder.Tensor"]
    assert fallen_back(lambda x, y: x**y, x, y) == ["aten.pow.Tensor_Tensor"]


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x: x // torch.zeros_like(x), [1, 2]),
        (lambda x: x % 0, [1, 2]),
        (lambda x: x**-1, [1, 2]),
        (lambda x: x.masked_fill(x > 0, 2**40), torch.tensor([1, 2], dtype=I32)),
        (lambda x: x.masked_fill(x > 0, 1e9), torch.tensor([1, 2], dtype=F16)),
        (lambda x: torch.nn.functional.hardswish(x), [1, 2]),
    ],
)
def test_errors_are_those_of_eager(function, values):
    x = torch.as_tensor(values)
    with pytest.raises((RuntimeError, NotImplementedError)) as eager:
        function(x)
    torch._dynamo.reset()
    with pytest.raises(Exception, match=str(eager.value)[:20].replace("(", r"\(")):
        torch.compile(function, backend="accel", dynamic=False)(x)
    assert torch.equal(torch.compile(lambda x: x + x, backend="accel")(x), x + x)
