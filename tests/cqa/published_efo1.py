"""What EFO-1-QA publishes: the numbers of its 301 types, digests of the forms, the JSON of queries.

The reader and the writer of grounded queries follow the published description alone; they share
nothing with the package but the class of trees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from cqa.types.tree import Tree
from tests.cqa.small_graph import ENTITIES, full

# The number in each type's `formula_id`, by the ASCII order of the formulas in the form Original.
NUMBERS = (
    327, 328, 140, 184, 228, 352, 353, 145, 189, 233, 377, 378, 150, 194, 238, 332, 333, 141,
    185, 229, 357, 358, 146, 190, 234, 382, 383, 151, 195, 239, 312, 313, 137, 181, 225, 317,
    318, 138, 182, 226, 322, 323, 139, 183, 227, 342, 343, 143, 187, 231, 347, 348, 144, 188,
    232, 372, 373, 149, 193, 237, 163, 207, 251, 166, 210, 254, 161, 205, 249, 162, 206, 250,
    165, 209, 253, 16, 272, 287, 262, 267, 282, 21, 26, 292, 297, 307, 387, 392, 397, 407, 412,
    427, 17, 273, 288, 263, 268, 283, 22, 27, 293, 298, 308, 388, 393, 398, 408, 413, 428, 167,
    211, 255, 168, 212, 256, 170, 214, 258, 13, 129, 132, 127, 128, 131, 14, 15, 133, 134, 136,
    152, 153, 154, 156, 157, 160, 173, 217, 176, 220, 171, 215, 172, 216, 175, 219, 19, 20, 177,
    178, 180, 196, 197, 198, 200, 201, 204, 25, 221, 222, 224, 240, 241, 242, 244, 245, 248, 0,
    65, 39, 49, 74, 42, 52, 59, 37, 47, 62, 38, 48, 71, 41, 51, 5, 8, 77, 80, 86, 3, 4, 43, 44,
    46, 7, 53, 54, 56, 1, 2, 89, 99, 92, 102, 87, 97, 88, 98, 91, 101, 9, 10, 93, 94, 96, 12,
    103, 104, 106, 442, 476, 510, 447, 481, 515, 452, 486, 520, 443, 477, 511, 448, 482, 516,
    453, 487, 521, 439, 473, 507, 440, 474, 508, 441, 475, 509, 445, 479, 513, 446, 480, 514,
    451, 485, 519, 28, 431, 434, 429, 430, 433, 29, 30, 435, 436, 438, 454, 455, 456, 458, 459,
    462, 465, 499, 468, 502, 463, 497, 464, 498, 467, 501, 32, 33, 469, 470, 472, 488, 489, 490,
    492, 493, 496, 36, 503, 504, 506, 522, 523, 524, 526, 527, 530,
)  # fmt: skip

# The first 16 digits of SHA-256 over the formulas of a form, a line each, in that order.
DIGESTS = {
    "Original": "d3874205bbdec5fe",
    "DM": "ae7ce4fda7705f86",
    "DM+I": "423e38060b34b76f",
    "DNF": "34681decc29869d5",
    "Original+d": "665ede59567818d4",
    "DNF+d": "0653861f4bcb9cb0",
    "DNF+IU": "519c1589ca201986",
    "DNF+IUd": "708db529f62d31dc",
    "DNF+IUD": "945ef24a1f97495b",
}

Part = tuple[str, list[Any]]

# The letter in the JSON of an operator in a formula.
LETTERS = {"I": "i", "U": "u"}


def parsed(formula: str) -> Part:
    """A formula as nested (operator, operands)."""
    stack: list[Part] = [("", [])]
    for mark in formula:
        if mark == "(":
            stack.append(("", []))
        elif mark == ")":
            done = stack.pop()
            stack[-1][1].append(done)
        elif mark != ",":
            stack[-1] = mark, stack[-1][1]
    ((found,),) = (stack[0][1],)
    return found  # type: ignore[no-any-return]


def answers(part: Part, given: Any) -> set[int]:
    """What a query of a known form means; the JSON must be just as published."""
    op, below = part
    assert set(given) == {"o", "a"} and given["o"] == LETTERS.get(op, op)
    inputs = given["a"]
    if op == "e":
        (entity,) = inputs
        assert type(entity) is int
        return {entity}
    if op == "p":
        (relation,), start = inputs
        assert type(relation) is int
        return {end for begin in answers(below[0], start) for end in _links()[begin, relation]}
    if op == "n":
        assert isinstance(inputs, dict)
        return set(range(ENTITIES)) - answers(below[0], inputs)
    assert isinstance(inputs, list) and len(inputs) == len(below)
    sets = [answers(*pair) for pair in zip(below, inputs, strict=True)]
    if op in "iI":
        return set.intersection(*sets)
    if op in "uU":
        return set.union(*sets)
    assert op in "dD"
    return sets[0].difference(*sets[1:])


@cache
def _links() -> dict[tuple[int, int], set[int]]:
    """What each directed relation of the small graph leads to from each entity."""
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for head, relation, tail in full():
        found[head, 2 * relation].add(tail)
        found[tail, 2 * relation + 1].add(head)
    return found


def written(part: Part, numbers: Iterator[int]) -> tuple[dict[str, Any], Tree]:
    """A grounded query of a form as published, and what it is as a tree."""
    op, below = part
    if op == "e":
        entity = next(numbers) % ENTITIES
        return {"o": "e", "a": [entity]}, Tree("e", entity=entity)
    relation = next(numbers) if op == "p" else None
    made = [written(operand, numbers) for operand in below]
    objects: list[Any] = [one for one, _ in made]
    tree = Tree(op, tuple(operand for _, operand in made), relation)
    if op == "n":
        return {"o": "n", "a": objects[0]}, tree
    if op == "p":
        return {"o": "p", "a": [[relation], *objects]}, tree
    return {"o": LETTERS.get(op, op), "a": objects}, tree


def grounded(tree: Tree, random: Random) -> Tree:
    """A type with relations and anchors of the small graph."""
    operands = tuple(grounded(operand, random) for operand in tree.operands)
    relation = random.randrange(10) if tree.op == "p" else None
    entity = random.randrange(ENTITIES) if tree.op == "e" else None
    return Tree(tree.op, operands, relation, entity)
