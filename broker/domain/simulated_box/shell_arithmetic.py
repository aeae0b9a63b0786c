"""Arithmetic of a simulated shell: whole numbers of 64 bits, variables and the usual operators."""

import re
from collections.abc import Mapping

MAX_DEPTH = 20  # of parentheses and signs
TOKEN = re.compile(r"\s*(?:\d{1,18}|[A-Za-z_]\w*|<=|>=|==|!=|&&|\|\||[-+*/%()<>!])", re.ASCII)
NUMBER = re.compile(r"\s*-?\d{1,18}\s*", re.ASCII)
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
PRECEDENCE = {operator: level for level, operators in enumerate(LEVELS, 1) for operator in operators}
HALF = 1 << 63  # of the numbers of 64 bits


class InvalidArithmetic(Exception):
    """The expression is wrong, or uses what the box does not imitate."""


def evaluate(text: str, variables: Mapping[str, str]) -> int:
    """Return the value of an expression; raises InvalidArithmetic."""
    return _Expression(text, variables).value()


class _Expression:
    """Reads an expression from left to right."""

    def __init__(self, text: str, variables: Mapping[str, str]) -> None:
        self._tokens: list[str] = []
        self._variables, self._depth = variables, 0
        at, end = 0, len(text.rstrip())
        while at < end:
            found = TOKEN.match(text, at)
            if found is None:
                raise InvalidArithmetic
            self._tokens.append(found[0].strip())
            at = found.end()
        self._tokens.reverse()

    def value(self) -> int:
        value = self._binary(1)
        if self._tokens:
            raise InvalidArithmetic
        return value

    def _binary(self, lowest: int) -> int:
        left = self._operand()
        while self._tokens and (precedence := PRECEDENCE.get(self._tokens[-1], 0)) >= lowest:
            operator = self._tokens.pop()
            left = _apply(operator, left, self._binary(precedence + 1))
        return left

    def _operand(self) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH or not self._tokens:
            raise InvalidArithmetic
        token = self._tokens.pop()
        if token == "(":
            value = self._binary(1)
            if not self._tokens or self._tokens.pop() != ")":
                raise InvalidArithmetic
        elif token in {"-", "+", "!"}:
            operand = self._operand()
            value = {"-": -operand, "+": operand, "!": int(not operand)}[token]
        elif token[0].isdigit():
            value = int(token)
        elif token in PRECEDENCE or token == ")":
            raise InvalidArithmetic
        else:
            stored = self._variables.get(token, "")
            value = int(stored) if NUMBER.fullmatch(stored) else 0
        self._depth -= 1
        return value


def _apply(operator: str, left: int, right: int) -> int:
    if operator in {"/", "%"}:
        if right == 0:
            raise InvalidArithmetic
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)  # rounds towards zero
        return quotient if operator == "/" else left - quotient * right
    results: dict[str, int] = {
        "||": int(bool(left or right)), "&&": int(bool(left and right)), "==": int(left == right),
        "!=": int(left != right), "<": int(left < right), "<=": int(left <= right), ">": int(left > right),
        ">=": int(left >= right), "+": left + right, "-": left - right, "*": left * right,
    }  # fmt: skip
    return (results[operator] + HALF) % (2 * HALF) - HALF
