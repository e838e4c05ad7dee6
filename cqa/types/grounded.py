"""Grounded operator trees as the JSON of EFO-1-QA: `{"o": operator, "a": [...]}`.

`p` has a relation and its input, `e` an entity, `n` its input itself; the others a list of inputs.
The letters of I and U are those of i and u. Read are also other spellings: the letters of the
formula, ids without a list around them, n's input in a list, inputs as JSON texts of their own.
"""

from __future__ import annotations

import json
from typing import Any

from cqa.errors import FormulaError
from cqa.types.tree import ARITY, MAX_HEIGHT, NARROW, WIDE, Tree, joined, nodes

# The published letters of operators that have others in a formula.
_LETTERS = {"I": "i", "U": "u"}


def to_json(tree: Tree) -> dict[str, Any]:
    """A grounded tree as the object that EFO-1-QA publishes, ids wrapped in lists.

    `{"o": "p", "a": [[12], {"o": "e", "a": [345]}]}`. Raises FormulaError for a tree whose
    relations and anchors are not all given.
    """
    if not tree.grounded:
        missing = next(
            node.op
            for node in nodes(tree)
            if node.op in "pe" and node.relation is None and node.entity is None
        )
        what = "a relation" if missing == "p" else "an entity"
        raise FormulaError(f"{tree}: {missing} lacks {what}, so that it is no grounded query")
    return _object(tree)


def _object(tree: Tree) -> dict[str, Any]:
    inputs: list[Any] = [_object(operand) for operand in tree.operands]
    if tree.op == "n":
        return {"o": "n", "a": inputs[0]}
    if tree.op == "e":
        inputs = [tree.entity]
    elif tree.op == "p":
        inputs.insert(0, [tree.relation])
    return {"o": _LETTERS.get(tree.op, tree.op), "a": inputs}


def write_json(tree: Tree) -> str:
    """The JSON text of a grounded tree. Raises FormulaError as `to_json` does."""
    return json.dumps(to_json(tree), ensure_ascii=False)


def from_json(value: object) -> Tree:
    """The tree of an object, or of its JSON text.

    Ids may be bare or in a list, inputs objects or JSON texts of objects, n's input alone or in a
    list; i, u and d may be capital or not, as the number of inputs tells which they are. Raises
    FormulaError that names the place in the object, such as `a[1].a[0]`.
    """
    return _read(value, "", 0)


def _read(value: object, place: str, height: int) -> Tree:
    if height >= MAX_HEIGHT:
        raise FormulaError(f"nested deeper than {MAX_HEIGHT} operators")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except RecursionError:
            raise FormulaError(f"nested deeper than {MAX_HEIGHT} operators") from None
        except ValueError as error:
            raise _wrong(place, f"not JSON: {error}") from None
    if not isinstance(value, dict) or "o" not in value or "a" not in value:
        raise _wrong(place, f'an object with "o" and "a" was expected, not {_shown(value)}')
    op, given = value["o"], value["a"]
    if not isinstance(op, str) or op not in ARITY:
        raise _wrong(place, f"there is no operator {_shown(op)}; choose of {' '.join(ARITY)}")
    inner = f"{place}.a" if place else "a"
    if op == "e":
        return Tree("e", entity=_number(given, inner))
    if op == "n" and not isinstance(given, list):
        return Tree("n", (_read(given, inner, height + 1),))
    if not isinstance(given, list):
        raise _wrong(inner, f"a list was expected, not {_shown(given)}")
    relation = None
    first = 0
    if op == "p":
        if len(given) != 2:
            raise _wrong(inner, f"p takes a relation and one input, not {len(given)} things")
        relation, first = _number(given[0], f"{inner}[0]"), 1
    operands = [
        _read(part, f"{inner}[{at}]", height + 1) for at, part in enumerate(given) if at >= first
    ]
    narrow = NARROW.get(op, op)
    if narrow in WIDE and len(operands) >= 2:
        return joined(narrow, operands)
    if len(operands) != ARITY[op][0]:
        more = " or more" if op in "iudIUD" else ""
        raise _wrong(inner, f"{op} takes {2 if more else 1}{more}, not {len(operands)} inputs")
    return Tree(op, tuple(operands), relation)


def _number(value: object, place: str) -> int:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    # JSON's true is an int in Python.
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(place, f"an id (a number from 0) was expected, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong(place: str, message: str) -> FormulaError:
    return FormulaError(f"{place}: {message}" if place else message)
