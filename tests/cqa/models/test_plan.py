"""Plans: one query type as steps, run for one query and for many, trees in forms, query graphs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch

from cqa.errors import QueryError
from cqa.evaluation.plan import states
from cqa.models.plan import Disjuncts, columns, compiled, grouped, logits, run
from cqa.query import Query, ground
from cqa.types.betae import named
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.normal import FORMS
from cqa.types.registry import efo1_types, graph_types
from cqa.types.tree import Tree
from tests.cqa.models.fuzzy import ENTITIES, RELATIONS, Fuzzy, FuzzySingle, numbers


def filled(tree: Tree, random: Random) -> Tree:
    """A type with random relations and anchors."""
    operands = tuple(filled(operand, random) for operand in tree.operands)
    relation = random.randrange(RELATIONS) if tree.op == "p" else None
    entity = random.randrange(ENTITIES) if tree.op == "e" else None
    return Tree(tree.op, operands, relation, entity)


def random_graph(query: Query, random: Random) -> Query:
    """A query graph with random relations and constants."""
    return ground(
        query,
        {name: random.randrange(RELATIONS) for name in query.relations},
        {name: random.randrange(ENTITIES) for name in query.constants},
    )


def check_batches(queries: list[Tree] | list[Query], batch: Fuzzy) -> int:
    """That a batch of each type gives what each query gives alone; the number of types."""
    groups = grouped(queries, batch.form)
    for group in groups:
        anchors, relations = numbers(group.anchors), numbers(group.relations)
        found = run(batch, group.plan, anchors, relations)
        for row, place in enumerate(group.own):
            expected = states(FuzzySingle(), queries[place])
            assert len(expected) == len(found)
            for state, alone in zip(found, expected, strict=True):
                shown = logits(batch, state)[row].numpy()
                np.testing.assert_allclose(shown, alone, rtol=1e-12)
            own = tuple(group.anchors[row].tolist()), tuple(group.relations[row].tolist())
            assert columns(group.plan, queries[place]) == own
    return len(groups)


def test_a_batch_of_each_tree_is_what_each_query_is_alone() -> None:
    random = Random(1)
    trees = [filled(row.tree, random) for row in efo1_types() for _ in range(3)]
    assert check_batches(trees, Fuzzy()) == 301


def test_a_batch_of_each_query_graph_is_what_each_query_is_alone() -> None:
    random = Random(2)
    rows = graph_types("paper")[::7]
    queries = [random_graph(row.query, random) for row in rows for _ in range(3)]
    several = [query for query in queries if len(query.free) == 2]
    assert several and check_batches(queries, Fuzzy()) > 80


@pytest.mark.parametrize("form", FORMS)
def test_a_model_picks_the_form_of_trees(form: str) -> None:
    # min and max distribute, and De Morgan holds of 1 - x; projection passes max.
    random = Random(form)
    trees = [filled(row.tree, random) for row in efo1_types()[::4] for _ in range(2)]
    union = "max" if form.startswith("DNF") else "own"
    check_batches(trees, Fuzzy(union=union, form=form))


def test_unions_at_the_root_are_lists_of_states() -> None:
    tree = filled(named("2u"), Random(3))
    model = Fuzzy(union="max")
    plan = compiled(tree)
    anchors, relations = (numbers([given]) for given in columns(plan, tree))
    (state,) = run(model, plan, anchors, relations)
    assert isinstance(state, Disjuncts) and len(state.states) == 2
    some = torch.tensor([[3, 0, 5]])
    assert torch.equal(logits(model, state, some), logits(model, state)[:, [3, 0, 5]])
    below = filled(named("up"), Random(3))
    plan = compiled(below)
    anchors, relations = (numbers([given]) for given in columns(plan, below))
    with pytest.raises(QueryError, match="a union below its root"):
        run(model, plan, anchors, relations)
    plan = compiled(below, "DNF")
    (state,) = run(model, plan, anchors, relations)
    assert isinstance(state, Disjuncts)
    # The anchors of a form are those of the query, in its columns.
    assert plan.anchors == 2 and plan.relations == 3 and plan.projections == 4


class Differences(Fuzzy):
    """Operators that know no complement."""

    negation = False

    def not_(self, state: torch.Tensor) -> torch.Tensor:
        """Not here."""
        raise AssertionError

    def difference(self, state: torch.Tensor, taken: list[torch.Tensor]) -> torch.Tensor:
        """The set without each of the others."""
        return torch.stack([state, *(1 - other for other in taken)]).amin(0)


class Positive(Fuzzy):
    """Operators without any negation."""

    negation = False


def test_a_model_may_have_differences_only() -> None:
    random = Random(4)
    names = ["2in", "3in", "pni", "inp", "pin"]
    trees = [filled(named(name), random) for name in names for _ in range(3)]
    check_batches(trees, Differences(form="DNF+IUD", union="max"))
    check_batches(trees, Differences())
    graph = read_graph("(1(5,e1))&((!(2(6,f1)))&(3(e1,f1)))")
    check_batches([graph], Differences())
    complement = Tree("n", (filled(named("1p"), random),))
    for tree, model, message in (
        (complement, Differences(), "a complement that is of no difference"),
        (trees[0], Positive(), "the query has a negation, and the model has none"),
    ):
        plan = compiled(tree)
        with pytest.raises(QueryError, match=message):
            run(model, plan, *(numbers([given]) for given in columns(plan, tree)))


def test_plans_are_of_the_structure_alone() -> None:
    random = Random(5)
    one, other = filled(named("pi"), random), filled(named("pi"), random)
    assert compiled(one) is compiled(other) is compiled(named("pi"))
    assert compiled(one) is not compiled(one, "DM")
    plan = compiled(one)
    steps = "entity project entity project project and"
    assert " ".join(call.op for call in plan.steps) == steps
    with pytest.raises(QueryError, match="of another type than the plan"):
        columns(plan, filled(named("ip"), random))
    with pytest.raises(QueryError, match="not grounded: an anchor is missing"):
        columns(plan, named("pi"))
    with pytest.raises(QueryError, match="query 2: the query is not grounded"):
        grouped([one, named("pi")])
    with pytest.raises(QueryError, match=r"anchors of shape \(3, 1\); the plan needs \(3, 2\)"):
        run(Fuzzy(), plan, numbers([[0], [1], [2]]), numbers([[0, 1, 2]] * 3))


def test_states_are_let_go_once_they_are_used() -> None:
    plan = compiled(named("pi"))
    spent = [place for places in plan.spent for place in places]
    assert sorted(spent) == [0, 1, 2, 3, 4]
    # Of several free variables' states none is let go.
    plan = compiled(read_graph("(1(5,f1))&(2(f1,f2))"))
    assert not set(plan.free) & {place for places in plan.spent for place in places}
