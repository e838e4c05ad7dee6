"""What pairs reduce to: hand-worked cases, every assignment tried out, published shares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from cqa.answering.answer import evaluate
from cqa.answering.semiring import FEWEST_MISSING
from cqa.answering.template import as_query, template_of
from cqa.errors import QueryError
from cqa.graphs.graph import Graph, from_triples
from cqa.hardness.hardness import Hardness, reducible
from cqa.hardness.reductions import Reduction, own_name, shown_name, spelled
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types import betae
from cqa.types.efok_text import read_formula as read_graph_formula
from cqa.types.registry import efo1_types, graph_types
from cqa.types.tree import Tree, arrange, nodes, project, read_formula
from tests.cqa.brute import Brute, Triple, _forward
from tests.cqa.random_queries import (
    ENTITIES,
    RELATIONS,
    random_query,
    random_tree,
    random_triples,
)


def graph_of(
    train: Collection[Triple], test: Collection[Triple], entities: int, relations: int
) -> Graph:
    """A graph without valid triples."""
    parts = [np.array(sorted(rows), np.int32).reshape(-1, 3) for rows in (train, (), test)]
    return from_triples(parts, entity_count=entities, relation_count=relations)


# --- hand-worked ----------------------------------------------------------------------------------


def one_match(name: str, missing: Collection[int]) -> tuple[Graph, Tree, int]:
    """A graph in which a type has one match, whose p of these numbers are missing.

    Every p has a relation of its own and every set but a negated one a single entity; a negated
    branch leads elsewhere. Gives the grounded tree and the answer, too.
    """
    train: list[Triple] = []
    test: list[Triple] = []
    used = [0, 0]  # entities, relations

    def entity() -> int:
        used[0] += 1
        return used[0] - 1

    def grown(tree: Tree, at: int) -> Tree:
        if tree.op == "e":
            return Tree("e", entity=at)
        if tree.op == "p":
            number, source = used[1], entity()
            used[1] += 1
            (test if number in missing else train).append((source, number, at))
            return project(grown(tree.operands[0], source), 2 * number)
        return Tree(
            tree.op, tuple(grown(o, entity() if o.op == "n" else at) for o in tree.operands)
        )

    answer = entity()
    tree = grown(betae.named(name), answer)
    # Nothing that is negated holds of the answer; n passes its own entity on.
    return graph_of(train, test, used[0], used[1]), tree, answer


# The p of a tree are numbered from the root, left branch first.
WORKED = [
    ("1p", "0", "1p"),
    ("2p", "0", "1p"), ("2p", "1", "1p"), ("2p", "01", "2p"), ("2p", "", "trivial"),
    ("3p", "0", "1p"), ("3p", "1", "1p"), ("3p", "2", "1p"), ("3p", "01", "2p"),
    ("3p", "02", "2p"), ("3p", "12", "2p"), ("3p", "012", "3p"),
    ("4p", "2", "1p"), ("4p", "03", "2p"), ("4p", "013", "3p"), ("4p", "0123", "4p"),
    ("2i", "0", "1p"), ("2i", "1", "1p"), ("2i", "01", "2i"),
    ("3i", "1", "1p"), ("3i", "02", "2i"), ("3i", "012", "3i"),
    ("4i", "3", "1p"), ("4i", "13", "2i"), ("4i", "012", "3i"), ("4i", "0123", "4i"),
    # ip is (p,(i,(p,(e)),(p,(e)))), pi is (i,(p,(e)),(p,(p,(e)))).
    ("ip", "0", "1p"), ("ip", "1", "1p"), ("ip", "12", "2i"), ("ip", "01", "2p"),
    ("ip", "02", "2p"), ("ip", "012", "2i1p"), ("ip", "", "trivial"),
    ("pi", "0", "1p"), ("pi", "1", "1p"), ("pi", "2", "1p"), ("pi", "01", "2i"),
    ("pi", "02", "2i"), ("pi", "12", "2p"), ("pi", "012", "1p2i"),
    # One disjunct is enough: the best of them counts.
    ("2u", "0", "trivial"), ("2u", "01", "2u"),
    ("up", "0", "1p"), ("up", "1", "trivial"), ("up", "12", "1p"), ("up", "01", "1p"),
    ("up", "012", "2u1p"),
    # Negated branches are not counted: (i,(n,(p,(e))),(p,(e))) has its positive p last.
    ("2in", "1", "2in"), ("2in", "", "trivial"),
    ("3in", "0", "1p"), ("3in", "1", "1p"), ("3in", "01", "3in"),
    ("inp", "0", "1p"), ("inp", "2", "1p"), ("inp", "02", "2in1p"),
    ("pin", "1", "1p"), ("pin", "2", "1p"), ("pin", "12", "2pi1pn"),
    ("pni", "2", "2nu1p"), ("pni", "0", "trivial"),
]  # fmt: skip

PAPER = [
    # Every branch of a union must hold; a known branch makes the union known.
    ("up", "0", "1p"), ("up", "1", "trivial"), ("up", "12", "2u"), ("up", "01", "1p"),
    ("up", "012", "2u1p"), ("2u", "01", "2u"), ("2u", "0", "trivial"), ("pi", "02", "2i"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "missing", "expected"), WORKED)
def test_worked(name: str, missing: str, expected: str) -> None:
    graph, tree, answer = one_match(name, set(map(int, missing)))
    (found,) = Hardness(graph).label([tree], [[answer]]).of(0)
    assert found is not None and found.name == expected
    assert found.full == (expected == shown_name(betae.names(tree.abstract)))


@pytest.mark.parametrize(("name", "missing", "expected"), PAPER)
def test_worked_as_the_paper(name: str, missing: str, expected: str) -> None:
    graph, tree, answer = one_match(name, set(map(int, missing)))
    (found,) = Hardness(graph, compat="paper").label([tree], [[answer]]).of(0)
    assert found is not None and found.name == expected


def test_paper_leaves_out_answers_of_one_branch() -> None:
    graph = graph_of([], [(0, 0, 2), (1, 1, 3)], 4, 2)
    tree = arrange(Tree("u", tuple(project(Tree("e", entity=e), 2 * e) for e in (0, 1))))
    assert Hardness(graph, compat="paper").label([tree], [[2, 3]]).of(0) == [None, None]
    assert [k and k.name for k in Hardness(graph).label([tree], [[2, 3, 0]]).of(0)] == [
        "2u", "2u", None,
    ]  # fmt: skip


# Formula, missing atoms by their number in it, what they spell.
GRAPHS = [
    # Parallel edges: both missing start from a known entity twice.
    ("(r1(s1,e1))&((r2(e1,f1))&(r3(e1,f1)))", (2,), "1p"),
    ("(r1(s1,e1))&((r2(e1,f1))&(r3(e1,f1)))", (2, 3), "2i"),
    ("(r1(s1,e1))&((r2(e1,f1))&(r3(e1,f1)))", (1, 2), "2i"),
    # A circle: the known way round makes the link inside it one from a known entity.
    ("(r1(s1,e1))&((r2(e1,f1))&((r3(e1,e2))&(r4(e2,f1))))", (3,), "1p"),
    ("(r1(s1,e1))&((r2(e1,f1))&((r3(e1,e2))&(r4(e2,f1))))", (2, 4), "2i"),
    ("(r1(s1,e1))&((r2(e1,f1))&((r3(e1,e2))&(r4(e2,f1))))", (3, 4), "2p"),
    (
        "(r1(s1,e1))&((r2(e1,f1))&((r3(e1,e2))&(r4(e2,f1))))",
        (1, 2, 4),
        "(r1(s1,e1))&((r2(e1,f1))&(r3(e1,f1)))",
    ),
    # Two free variables: what is known of one makes it a constant for the other.
    ("(r1(s1,f1))&(r2(f1,f2))", (1,), "1p"),
    ("(r1(s1,f1))&(r2(f1,f2))", (2,), "1p"),
    ("(r1(s1,f1))&((r2(s2,f2))&(r3(f1,f2)))", (3,), "1p"),
    ("(r1(s1,f1))&((r2(s2,f2))&(r3(f1,f2)))", (1, 3), "2i"),
    ("(r1(s1,f1))&((r2(s2,f1))&(r3(f1,f2)))", (1, 3), "(r1(s1,f1))&(r2(f1,f2))"),
    ("(r1(s1,f1))&((r2(s2,f2))&(r3(f1,f2)))", (1, 2), "2i"),
    # An existential end without a constant stays one, unless nothing else is known.
    ("(r1(s1,f1))&(r2(e1,f1))", (2,), "1p"),
    ("(r1(s1,f1))&((r2(s2,f1))&(r3(e1,f1)))", (1, 3), "(r1(s1,f1))&(r2(e1,f1))"),
]


@pytest.mark.parametrize(("formula", "missing", "expected"), GRAPHS)
def test_spelled_by_query_graphs(formula: str, missing: Sequence[int], expected: str) -> None:
    query = read_graph_formula(formula)
    mask = sum(1 << number - 1 for number in missing)
    found = spelled(query.disjuncts[0].atoms, query.free, mask)
    assert (found.name, found.missing) == (expected, len(missing))


def _left(tree: Tree, missing: Collection[Tree]) -> Tree | None:
    """What is left of a tree of e, p and i: known branches dropped, existing links passed over."""
    below = [_left(operand, missing) for operand in tree.operands]
    if tree.op == "e":
        return None
    if tree.op == "p":
        return project(below[0] or Tree("e")) if any(tree is m for m in missing) else below[0]
    unknown = [branch for branch in below if branch is not None]
    return reduce(lambda a, b: Tree("i", (a, b)), unknown) if unknown else None


def test_trees_are_spelled_as_by_dropping_known_branches() -> None:
    checked = 0
    for row in efo1_types():
        tree = row.tree
        if {node.op for node in nodes(tree)} & set("nu"):
            continue
        template = template_of(tree).form
        assert isinstance(template, Tree)
        query = from_tree(template)
        atoms = query.disjuncts[0].atoms
        steps = {node.relation: node for node in nodes(template) if node.op == "p"}
        for mask in range(1, 1 << len(atoms)):
            chosen = [steps[atom.relation] for bit, atom in enumerate(atoms) if mask >> bit & 1]
            left = _left(template, chosen)
            assert left is not None
            found = spelled(atoms, query.free, mask)
            assert found.hops == left.depth and found.missing == len(chosen)
            names = betae.names(left)
            if names:
                assert found.name == shown_name(names)
            else:
                assert betae._key(read_formula(found.name)) == betae._key(left)
            checked += 1
    assert checked > 1000


def test_names_do_not_depend_on_how_a_graph_is_written() -> None:
    random = Random(5)
    for row in random.sample(graph_types(), 60):
        query = row.query
        assert own_name(query) in (row.formula, *row.names)
        atoms = list(query.disjuncts[0].atoms)
        random.shuffle(atoms)
        names: dict[Any, Variable] = {
            v: Variable(f"v{random.random()}") for a in atoms for v in a.variables
        }
        turned = []
        for atom in atoms:
            ends: list[Any] = [names.get(e, e) for e in (atom.head, atom.tail)]
            random.shuffle(ends)
            turned.append(Atom(atom.relation, ends[0], ends[1], atom.positive))
        free = tuple(names[v] for v in query.free)
        assert own_name(Query(free, (Conjunction(tuple(turned)),))) == own_name(query)


def test_reducible_names_every_simpler_type() -> None:
    def names(text: str, compat: str | None = None) -> list[str]:
        return [kind.name for kind in reducible(betae.named(text), compat)]

    assert names("4p") == ["1p", "2p", "3p", "4p"]
    assert names("pi") == ["1p", "2i", "2p", "1p2i"]
    assert names("4i") == ["1p", "2i", "3i", "4i"]
    assert names("pni") == ["2nu1p"] and names("2in") == ["2in"] and names("2u") == ["2u"]
    assert names("up") == ["1p", "2u1p"]
    assert names("up", "paper") == ["1p", "2u", "2u1p"]


# --- every assignment tried out -------------------------------------------------------------------


def tried_out(
    query: Query, brute: Brute, observed: Collection[Triple], row: tuple[int, ...], own: str
) -> Reduction | None:
    """The best reduction over all matches, one after the other."""
    best: Reduction | None = None
    given = dict(zip(query.free, row, strict=True))
    for part in query.disjuncts:
        atoms: list[Atom] = []
        for atom in part.atoms:
            if atom.positive and _forward(atom) not in map(_forward, atoms):
                atoms.append(atom)
        for match in brute.matches(part, query.free, given):
            triples = [brute._triple(_forward(atom), match) for atom in atoms]
            mask = sum(1 << bit for bit, triple in enumerate(triples) if triple not in observed)
            found = spelled(tuple(atoms), query.free, mask)
            if mask and mask == (1 << len(atoms)) - 1:
                found = replace(found, name=own, full=True)
            if best is None or found.order < best.order:
                best = found
    return best


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_every_assignment(seed: int) -> None:
    random = Random(seed)
    pairs, missing = 0, set()
    for _ in range(70):
        triples = random_triples(random)
        train = [triple for triple in triples if random.random() < 0.6]
        graph = graph_of(train, set(triples) - set(train), ENTITIES, RELATIONS)
        brute = Brute(triples, ENTITIES)
        queries: list[Tree | Query] = [
            random_query(random) if random.random() < 0.6 else random_tree(random) for _ in range(6)
        ]
        graphs = [from_tree(query) if isinstance(query, Tree) else query for query in queries]
        rows = [list(product(range(ENTITIES), repeat=len(query.free))) for query in graphs]
        rows = [sorted(random.sample(some, min(40, len(some)))) for some in rows]
        labels = Hardness(graph).label(queries, rows)
        for number, query in enumerate(graphs):
            for row, found in zip(rows[number], labels.of(number), strict=True):
                wanted = tried_out(query, brute, set(train), row, labels.types[number])
                assert (found and found.order) == (wanted and wanted.order), (query, row)
                if wanted is not None:
                    pairs += 1
                    missing.add(wanted.missing)
    assert pairs > 400 and missing >= {0, 1, 2, 3}


@pytest.mark.parametrize("family", ["efo1", "efok"])
def test_agrees_on_types_of_the_families(family: str) -> None:
    random = Random(family)
    pairs = 0
    trees: list[Any] = [row.tree for row in efo1_types()]
    graphs: list[Any] = [row.query for row in graph_types()]
    for shape in random.sample(trees if family == "efo1" else graphs, 150):
        triples = random_triples(random)
        train = [triple for triple in triples if random.random() < 0.5]
        graph = graph_of(train, set(triples) - set(train), ENTITIES, RELATIONS)
        template = template_of(shape)
        numbers = {
            atom.relation: random.randrange(2 * RELATIONS)
            for part in _parts(template.query) for atom in part.atoms
        }  # fmt: skip
        numbers |= {
            end.entity: random.randrange(ENTITIES)
            for part in _parts(template.query) for atom in part.atoms
            for end in (atom.head, atom.tail) if isinstance(end, Constant)
        }  # fmt: skip
        query = template.filled(numbers)  # type: ignore[arg-type]
        brute, asked = Brute(triples, ENTITIES), as_query(query)
        rows = list(product(range(ENTITIES), repeat=len(asked.free)))
        rows = sorted(random.sample(rows, min(12, len(rows))))
        labels = Hardness(graph).label([query], [rows])
        for answer, found in zip(rows, labels.of(0), strict=True):
            wanted = tried_out(asked, brute, set(train), answer, labels.types[0])
            assert (found and found.order) == (wanted and wanted.order), (query, answer)
            pairs += wanted is not None
    assert pairs > 100


def _parts(query: Query) -> list[Conjunction]:
    found = list(query.disjuncts)
    for part in query.disjuncts:
        for inner in part.without:
            found += _parts(inner)
    return found


def test_fewest_missing_links_are_those_of_the_semiring() -> None:
    """The walk of `cqa.answering.answer` on links with prices, one query after the other."""
    random = Random(9)
    priced = 0
    for _ in range(60):
        triples = random_triples(random)
        graph = graph_of(triples[::2], triples[1::2], ENTITIES, RELATIONS)
        queries = [random_query(random) for _ in range(4)]
        found = [evaluate(query, graph.priced(), FEWEST_MISSING) for query in queries]
        labels = Hardness(graph).label(queries, [each.tuples for each in found])
        for number, answers in enumerate(found):
            kinds = labels.of(number)
            assert answers.values is not None and None not in kinds
            assert [kind.missing for kind in kinds if kind] == answers.values.tolist()
            priced += sum(kind is not None and kind.missing > 0 for kind in kinds)
    assert priced > 500


def test_large_batches_are_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    triples = random_triples(random)
    graph = graph_of(triples[::2], triples[1::2], ENTITIES, RELATIONS)
    queries: list[Tree | Query] = [random_tree(Random(seed % 7)) for seed in range(60)]
    queries += [betae_query("pi", random) for _ in range(30)]
    queries += [random_query(Random(seed)) for seed in range(30)]
    widths = [1 if isinstance(query, Tree) else len(query.free) for query in queries]
    rows = [list(product(range(ENTITIES), repeat=width)) for width in widths]
    whole = Hardness(graph).label(queries, rows)
    monkeypatch.setattr("cqa.answering.search.BLOCK", 20)
    parted = Hardness(graph).label(queries, rows)
    assert [whole.of(n) for n in range(120)] == [parted.of(n) for n in range(120)]


def betae_query(name: str, random: Random) -> Tree:
    """A type of BetaE with any numbers."""

    def grown(tree: Tree) -> Tree:
        relation = random.randrange(2 * RELATIONS) if tree.op == "p" else None
        entity = random.randrange(ENTITIES) if tree.op == "e" else None
        return Tree(tree.op, tuple(map(grown, tree.operands)), relation, entity)

    return grown(betae.named(name))


# --- wrong input ----------------------------------------------------------------------------------

ONE = project(Tree("e", entity=0), 0)


@pytest.mark.parametrize(
    ("query", "answers", "message"),
    [
        (project(Tree("e"), 0), [1], "query 1: some relation or constant is no number"),
        (project(Tree("e", entity=9), 0), [1], "query 1: there is no entity 9; the graph has the"),
        (project(Tree("e", entity=0), 8), [1], "query 1: there is no relation 8; the graph has"),
        (ONE, [7], "query 1: an answer is no entity; the graph has the numbers 0 to 2"),
        (ONE, [[1, 2]], "query 1: an answer has 1 numbers"),
        (ONE, [[1], [1, 2]], "query 1: an answer is a number for each variable"),
    ],
)
def test_wrong_input(query: Any, answers: Any, message: str) -> None:
    graph = graph_of([(0, 0, 1)], [(0, 0, 2)], 3, 1)
    with pytest.raises(QueryError, match=message):
        Hardness(graph).label([query], [answers])


def test_wrong_modes() -> None:
    graph = graph_of([(0, 0, 1)], [(0, 0, 2)], 3, 1)
    with pytest.raises(QueryError, match="there is no compat 'old'"):
        Hardness(graph, compat="old")
    union = read_graph_formula("(0(0,f1))|(0(1,f1))")
    with pytest.raises(QueryError, match="which only an operator tree shows"):
        Hardness(graph, compat="paper").label([union], [[1]])
    assert Hardness(graph).label([], []).codes == []
    assert Hardness(graph).label([ONE], [[]]).of(0) == []
