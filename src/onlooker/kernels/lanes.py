"""Eight numbers at a time, in the widest registers that the machine has.

The compiler takes loops over a few dozen features or arms one number at a time for the most part: it counts on long
ones. Here a kernel says itself what goes side by side. Arrays are C-contiguous, their rows padded to a whole number of
lanes, and places in them are counted over all their numbers. The order of every sum is fixed by this, on any machine;
a product may be added without rounding it first.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

from onlooker.base.types import Vector
from onlooker.kernels.cached_njit import cached_njit

LANES = 8
"""Numbers side by side."""
_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
_BITS = ir.VectorType(ir.IntType(64), LANES)
_FUSED = ("contract",)


class _Eight(types.Type):  # type: ignore[misc]
    """The type of eight numbers in a kernel."""


EIGHT = _Eight("Eight")


@register_model(_Eight)
class _EightModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _NUMBERS)


class _Sign(AbstractTemplate):  # type: ignore[misc]
    """A sign that stands between two of them."""

    def generic(self, args: Any, kws: Any) -> Any:
        return EIGHT(*args) if not kws and args == (EIGHT, EIGHT) else None


_BETWEEN: dict[Any, Any] = {
    operator.add: ir.IRBuilder.fadd,
    operator.sub: ir.IRBuilder.fsub,
    operator.mul: ir.IRBuilder.fmul,
    operator.truediv: ir.IRBuilder.fdiv,
}
for _sign, _make in _BETWEEN.items():
    infer_global(_sign)(type("_Sign", (_Sign,), {}))
    lower_builtin(_sign, EIGHT, EIGHT)(
        lambda _context, builder, _signature, args, make=_make: make(builder, *args, flags=_FUSED)
    )


def _constant(values: Any) -> Any:
    return ir.Constant(_NUMBERS, [float(one) for one in values])


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Where number `at` of an array is."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _NUMBERS.as_pointer())


def _is_array(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype == types.float64


@intrinsic
def load(_typing: Any, array: Any, _at: Any) -> Any:
    """Numbers `at` to `at + 7` of an array."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *args), align=8)

    return (EIGHT(array, types.intp), code) if _is_array(array) else None


@intrinsic
def store(_typing: Any, array: Any, _at: Any, values: Any) -> Any:
    """Put eight numbers at `at` to `at + 7` of an array."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return (types.void(array, types.intp, EIGHT), code) if _is_array(array) and values == EIGHT else None


@intrinsic
def all_of(_typing: Any, _value: Any) -> Any:
    """The same number eight times."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(_NUMBERS, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    return EIGHT(types.float64), code


def _call(builder: Any, name: str, *args: Any) -> Any:
    """A function that the compiler knows for vectors."""
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS] * len(args))
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, args)


@intrinsic
def root(_typing: Any, _values: Any) -> Any:
    """Square roots."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.sqrt.v8f64", args[0])

    return EIGHT(EIGHT), code


@intrinsic
def larger(_typing: Any, _a: Any, _b: Any) -> Any:
    """The larger of two numbers, in each lane; the second where the first is not a number."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return EIGHT(EIGHT, EIGHT), code


@intrinsic
def above(_typing: Any, _a: Any, _b: Any, _values: Any) -> Any:
    """Values where a is larger than b, 0 elsewhere."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args[:2]), args[2], _constant([0.0] * LANES))

    return EIGHT(EIGHT, EIGHT, EIGHT), code


@intrinsic
def first_of(_typing: Any, _count: Any, _values: Any, _others: Any) -> Any:
    """The first `count` of eight values, and other ones after these."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        count, values, others = args
        one = builder.insert_element(ir.Constant(_BITS, ir.Undefined), count, ir.Constant(ir.IntType(32), 0))
        every = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
        return builder.select(builder.icmp_signed("<", ir.Constant(_BITS, list(range(LANES))), every), values, others)

    return EIGHT(types.int64, EIGHT, EIGHT), code


@intrinsic
def _times_power(_typing: Any, _values: Any, _shifted: Any) -> Any:
    """Values times two to the power of the last bits of `shifted`."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        values, shifted = (builder.bitcast(one, _BITS) for one in args)
        power = builder.shl(shifted, ir.Constant(_BITS, [52] * LANES))
        return builder.bitcast(builder.add(values, power), _NUMBERS)

    return EIGHT(EIGHT, EIGHT), code


def _halves(builder: Any, a: Any, b: Any, width: int) -> Any:
    """Sums of neighbours `width` apart, of a and b in turns."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    low = [lane if not lane & width else LANES + lane - width for lane in range(LANES)]
    high = [lane + width if not lane & width else LANES + lane for lane in range(LANES)]
    parts = [builder.shuffle_vector(a, b, ir.Constant(kind, order)) for order in (low, high)]
    return builder.fadd(*parts)


@intrinsic
def sums(_typing: Any, _a: Any, _b: Any, _c: Any, _d: Any, _e: Any, _f: Any, _g: Any, _h: Any) -> Any:
    """The sum of each of eight vectors."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pairs = [_halves(builder, args[i], args[i + 1], 1) for i in range(0, 8, 2)]
        fours = [_halves(builder, pairs[i], pairs[i + 1], 2) for i in range(0, 4, 2)]
        return _halves(builder, fours[0], fours[1], 4)

    return EIGHT(*([EIGHT] * 8)), code


def _folded(builder: Any, values: Any, join: Any) -> Any:
    """All lanes joined into one number."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    for width in (4, 2, 1):
        order = ir.Constant(kind, [(lane + width) % LANES for lane in range(LANES)])
        values = join(values, builder.shuffle_vector(values, values, order))
    return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))


@intrinsic
def total(_typing: Any, _values: Any) -> Any:
    """Sum of eight numbers."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _folded(builder, args[0], builder.fadd)

    return types.float64(EIGHT), code


@intrinsic
def largest(_typing: Any, _values: Any) -> Any:
    """Largest of eight numbers."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _folded(builder, args[0], lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    return types.float64(EIGHT), code


_fused = cached_njit(error_model="numpy", fastmath={"contract"})
_TO_WHOLE = 6755399441055744.0
"""1.5 * 2^52: a sum with it ends in the bits of the nearest whole number."""
_SMALLEST, _SMALL = -746.0, -700.0
"""Where exponentials are 0, and where they may soon have fewer digits than others."""


@_fused
def exp(values: Any) -> Any:
    """Exponentials, to within the last digit or two; 0 of what is not a number.

    Of the best arms some may have probabilities below 1e-300, so these are told apart down to the smallest number.
    """
    held = larger(values, all_of(_SMALLEST))
    shifted = held * all_of(1.4426950408889634) + all_of(_TO_WHOLE)
    whole = shifted - all_of(_TO_WHOLE)
    # The logarithm of 2 in two parts, of which the first has zeros at its end.
    rest = held - whole * all_of(0.6931471803691238) - whole * all_of(1.9082149292705877e-10)
    found = all_of(1.0 / 6227020800.0)
    found = found * rest + all_of(1.0 / 479001600.0)
    found = found * rest + all_of(1.0 / 39916800.0)
    found = found * rest + all_of(1.0 / 3628800.0)
    found = found * rest + all_of(1.0 / 362880.0)
    found = found * rest + all_of(1.0 / 40320.0)
    found = found * rest + all_of(1.0 / 5040.0)
    found = found * rest + all_of(1.0 / 720.0)
    found = found * rest + all_of(1.0 / 120.0)
    found = found * rest + all_of(1.0 / 24.0)
    found = found * rest + all_of(1.0 / 6.0)
    found = found * rest + all_of(0.5)
    found = found * rest + all_of(1.0)
    found = found * rest + all_of(1.0)
    # The smallest are found 2^100 times too large first: a power of two of its own would be out of range.
    up, down = all_of(100.0), all_of(2.0**-100)
    shifted = shifted + (up - above(held, all_of(_SMALL), up))
    return _times_power(found, shifted) * (above(held, all_of(_SMALL), all_of(1.0)) + down)


@_fused
def whole_lanes(n: int) -> int:
    """The least multiple of eight that is not below n."""
    return (n + LANES - 1) // LANES * LANES


@_fused
def aligned(n: int) -> Vector:
    """Zeros that begin where a register's worth of memory does."""
    found = np.zeros(n + LANES)
    first = (-(found.ctypes.data // 8)) % LANES
    return found[first : first + n]
