"""Arithmetic on what somebody else wrote: numbers, signs and parentheses, and nothing that can be called. Pure."""

import ast
import operator
from collections.abc import Callable
from math import isfinite

MOST_SIGNS = 200
"""Length of an expression at most."""

MOST_DIGITS = 300
"""Digits of a whole number at most, on the way to the result too."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_PEOPLE_S_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": None, ",": None})


class NotArithmetic(ValueError):
    """What was asked is no arithmetic, or too much of it; the message says which."""


def calculate(expression: str) -> float:
    """Return what an expression comes to: a whole number where it is one.

    Raises:
        NotArithmetic: anything but numbers, ``+ - * / // %`` and parentheses; a division by zero; too much of it.
    """
    if len(expression) > MOST_SIGNS:
        raise NotArithmetic(f"more than {MOST_SIGNS} signs")
    if "^" in expression or "**" in expression:
        raise NotArithmetic("powers are left out: they grow too fast")
    try:
        tree = ast.parse(expression.translate(_PEOPLE_S_SIGNS).strip(), mode="eval")
        return _bounded(_value(tree.body))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
        raise wrong if isinstance(wrong, NotArithmetic) else NotArithmetic("not an arithmetic expression") from wrong
    except ZeroDivisionError as wrong:
        raise NotArithmetic("a division by zero") from wrong
    except OverflowError as wrong:
        raise NotArithmetic("too large") from wrong


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _bounded(_BINARY[type(sign)](_value(left), _value(right)))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand))
    raise NotArithmetic("only numbers, + - * / // % and parentheses")


def _bounded(number: float) -> float:
    if isinstance(number, float):
        if not isfinite(number):
            raise NotArithmetic("too large")
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if abs(number) >= 10**MOST_DIGITS:
        raise NotArithmetic("too large")
    return number
