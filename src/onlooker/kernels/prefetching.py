"""Asking for memory before it is needed."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _prefetch(_context: Any, array: Any, _position: Any) -> Any:
    """Have the cache line that holds `array.flat[position]` loaded; a position that does not exist does no harm.

    By itself, the processor foresees a stream of addresses only up to the end of a page.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
        call = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        to_read, soon, of_data = whole(0), whole(3), whole(1)
        builder.call(call, [address, to_read, soon, of_data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)
