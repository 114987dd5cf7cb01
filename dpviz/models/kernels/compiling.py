"""Compilation of kernels: for declared types, kept on disk by the content of their source, without holding up other threads."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import populate_array

from dpviz.models.kernels import DENSE
from dpviz.models.losses import Loss

# LLVM turns loops over 16 replicas or more into SIMD instructions only where it does not unroll them first; loops over at most 15
# of these are unrolled afterwards, so that what they sum stays in registers
binding.set_option("", "-unroll-full-max-count=15")

INDEX, COLUMN = types.Array(types.uint64, 1, "C"), types.Array(types.uint32, 1, "C")
_SOURCES = (*Path(__file__).parent.glob("*.py"), *(Path(__file__).parents[1] / f"{name}.py" for name in ("losses", "elementary")))


def _kept() -> bool:
    """True where compiled functions can be kept; numba refuses to define one where neither its folder nor home can be written."""
    try:
        njit(cache=True)(_kept)
    except RuntimeError:
        return False
    return True


OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "cache": _kept()}
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_SOURCES))).hexdigest()


def real(precision: type[np.floating]) -> Any:
    """numba's type of float32 or float64."""
    return types.float32 if precision is np.float32 else types.float64


def flat(scalar: Any) -> Any:
    """The type of one-dimensional arrays whose numbers lie together."""
    return types.Array(scalar, 1, "C")


def blocks_of(scalar: Any) -> Any:
    """The type of a table by block of rows and column: where each begins, rows, values."""
    return types.Tuple((INDEX, COLUMN, flat(scalar)))


def table_of(scalar: Any) -> Any:
    """The type of a table in one precision: where rows begin, columns, values; dense columns, which these are; pairs."""
    return types.Tuple((INDEX, COLUMN, flat(scalar), flat(scalar), types.UniTuple(types.uint64, DENSE), INDEX))


def kernel(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that compiles a function for arguments of these types; it refuses others."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        made: list[Callable[..., Any]] = []
        failed: list[str] = []

        def compile_() -> None:
            dispatcher = njit(**OPTIONS, fastmath={"contract"})(function)
            if OPTIONS["cache"]:
                # numba compares the time of this one file; what it calls lies in others
                dispatcher._cache._cache_file._source_stamp = _STAMP
            try:
                dispatcher.compile(arguments)
                dispatcher.disable_compile()
                made.append(dispatcher)
            except NumbaError as error:
                failed.append(str(error))

        # numba leaves a cycle that holds all frames which led to a compilation, and so the rows of a training: a thread has no
        # others than its own
        thread = Thread(target=compile_)
        thread.start()
        thread.join()
        if failed:
            raise RuntimeError(f"{function.__qualname__} cannot be compiled; DPVIZ_COMPILED=0 does without. {failed[0]}")
        return made[0]

    return compiled


_PIECE: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def piece(function: Callable[..., Any]) -> Any:
    """A decorator of what kernels have in common: numba compiles it once a precision, LLVM optimises it in each kernel.

    There the width is a constant. Optimised by itself, for any width, it would be of no use to them.
    """
    made = njit(**_PIECE, forceinline=True)(function)
    optimised = made.compile

    def compile_(signature: Any) -> Any:  # under numba's lock of compilations
        level, config.OPT = config.OPT, type(config.OPT)(0)
        try:
            return optimised(signature)
        finally:
            config.OPT = level

    made.compile = compile_
    return made


@intrinsic(prefer_literal=True)
def stack(typing: Any, count: Any, like: Any) -> Any:
    """An array of `count` numbers on the stack, of the type of those in `like` (numba has no stack arrays: its issue 5084)."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    made = flat(like.dtype)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(like.dtype)
        size, each = (context.get_constant(types.intp, whole) for whole in (count.literal_value, context.get_abi_sizeof(kind)))
        array = context.make_array(made)(context, builder)
        memory = cgutils.alloca_once(builder, kind, size=size)
        memory.align = 64  # a cache line: numbers that lie in two take twice the time
        populate_array(array, memory, [size], [each], each, None)
        return array._getvalue()

    return made(count, like), generate


@intrinsic
def prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Asks for array[at] in the processor's second cache and does not wait; past the end of the array nothing happens."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place, number = builder.gep(context.make_array(array)(context, builder, given[0]).data, [given[1]]), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, *[number] * 3])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(ask, [place, number(0), number(2), number(1)])  # to read; second cache; data
        return context.get_dummy_value()

    return types.void(array, at), generate


def slope_of(loss: Loss) -> Callable[..., Any]:
    """The slope of a loss, which kernels compile as a part of themselves."""
    return _compilable(loss.slope_at)


@cache
def _compilable(formula: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = register_jitable(formula)
    return made
