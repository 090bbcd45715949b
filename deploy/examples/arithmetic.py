"""Arithmetic on text that is not trusted: numbers, operators and parentheses, and no calls. Pure."""

import ast
import operator
from collections.abc import Callable
from math import isfinite

MAX_CHARACTERS = 200
"""Length of an expression at most, in characters."""

MAX_DIGITS = 300
"""The most digits of a whole number, also of an intermediate result."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_WRITTEN_OPERATORS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": None, ",": None})


class NotArithmetic(ValueError):
    """The expression is no arithmetic, or too long or large; the message says which."""


def calculate(expression: str) -> float:
    """Return the value of an expression: an ``int`` where it is whole.

    Raises:
        NotArithmetic: it has anything but numbers, ``+ - * / // %`` and parentheses, divides by zero, or is too large.
    """
    if len(expression) > MAX_CHARACTERS:
        raise NotArithmetic(f"more than {MAX_CHARACTERS} characters")
    if "^" in expression or "**" in expression:
        raise NotArithmetic("powers are left out: they grow too fast")
    try:
        tree = ast.parse(expression.translate(_WRITTEN_OPERATORS).strip(), mode="eval")
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
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
            return _bounded(_BINARY[type(operation)](_value(left), _value(right)))
        case ast.UnaryOp(op=operation, operand=operand) if type(operation) in _UNARY:
            return _UNARY[type(operation)](_value(operand))
    raise NotArithmetic("only numbers, + - * / // % and parentheses")


def _bounded(number: float) -> float:
    if isinstance(number, float):
        if not isfinite(number):
            raise NotArithmetic("too large")
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if abs(number) >= 10**MAX_DIGITS:
        raise NotArithmetic("too large")
    return number
