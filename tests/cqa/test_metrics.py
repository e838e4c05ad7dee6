"""Metrics against hand-worked cases, naive counting and sorting of all tuples."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cqa.errors import QueryError
from cqa.evaluation import joint_ranks
from cqa.evaluation.joint_ranks import Order, at_most, before
from cqa.evaluation.metrics import (
    Metrics,
    check_ties,
    one_variable,
    one_variable_published,
    positions,
    ranks,
)
from cqa.evaluation.tuple_metrics import (
    TupleScores,
    scored_ranks,
    several_variables,
    several_variables_published,
)
from cqa.vocabularies import TIES

SHARES = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}
NONE = np.empty(0, np.int32)


def ids(*entities: int) -> Any:
    """A set of entities."""
    return np.array(entities, np.int32)


def rows(*tuples: tuple[int, ...]) -> Any:
    """Some tuples of entities."""
    return np.array(tuples, np.int32)


def no_rows(free: int) -> Any:
    """No tuple."""
    return np.empty((0, free), np.int32)


# --- one variable, by hand ----------------------------------------------------------------------


# Entities 0 … 6; 1 and 4 are answers, 4 an easy one; 3 and 6 tie with 1, 5 is above.
SCORES = np.array([0.1, 0.5, 0.2, 0.5, 0.9, 0.8, 0.5])


@pytest.mark.parametrize(
    ("ties", "rank"), [("optimistic", 2), ("realistic", 3), ("pessimistic", 4)]
)
def test_the_rank_counts_entities_above_and_a_share_of_the_tied(ties: str, rank: float) -> None:
    assert ranks(SCORES, ids(1), ids(1, 4), ties).tolist() == [rank]


def test_other_answers_do_not_push_an_answer_down() -> None:
    # With 3 and 6 among the answers only entity 5 is above.
    assert ranks(SCORES, ids(1, 3, 6), ids(1, 3, 4, 6)).tolist() == [2, 2, 2]


def test_metrics_of_a_hand_worked_query() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    # Hard: 1 (0 is above: rank 2) and 5 (0, 3, 4 above: rank 4); easy: 2 (0 above: rank 2).
    metrics, found = one_variable(scores, ids(2), ids(1, 5), NONE)
    assert found.tolist() == [2, 4]
    assert metrics == {
        "mrr": (1 / 2 + 1 / 4) / 2,
        "hit@1": 0.0,
        "hit@3": 0.5,
        "hit@10": 1.0,
        "ra_oracle": 0.5,  # of 0, 1 (2 is dropped) one is hard
        "entailment": 0.0,
    }


def test_a_constant_reasoner_gains_nothing_from_realistic_ties() -> None:
    scores = np.zeros(101)
    metrics, found = one_variable(scores, NONE, ids(7), NONE)
    assert found.tolist() == [51] and metrics["mrr"] == 1 / 51
    optimistic, _ = one_variable(scores, NONE, ids(7), NONE, ties="optimistic")
    assert optimistic["mrr"] == 1.0


def test_what_the_full_graph_takes_back_is_no_answer_but_is_entailed() -> None:
    scores = np.array([1.0, 1.0, 0.0, 0.0])
    # The observed graph gives 0 and 1; the full one takes 1 back and adds 2.
    metrics, found = one_variable(scores, ids(0, 1), ids(2), ids(1))
    assert found.tolist() == [2.5]  # 1 is above, 3 tied
    assert metrics["entailment"] == 1.0


def test_a_query_without_hard_or_without_easy_answers_lacks_their_metrics() -> None:
    assert one_variable(SCORES, ids(4), NONE, NONE)[0] == {"entailment": 1.0}
    assert "entailment" not in one_variable(SCORES, NONE, ids(4), NONE)[0]


@pytest.mark.parametrize(
    ("ties", "share"), [("optimistic", 1), ("realistic", 7 / 9), ("pessimistic", 2 / 3)]
)
def test_ra_oracle_shares_the_last_places_among_the_tied(ties: str, share: float) -> None:
    # Easy 0 is dropped; 1 has the first of three places, and 2, 3, 4 tie for two, of which 2 and 3
    # are hard: by chance two thirds of these two places are theirs.
    scores = np.array([9.0, 5.0, 2.0, 2.0, 2.0, 1.0])
    metrics, _ = one_variable(scores, ids(0), ids(1, 2, 3), NONE, ties=ties)
    assert metrics["ra_oracle"] == pytest.approx(share)


@pytest.mark.parametrize(("ties", "compat"), [("best", None), ("realistic", "papers")])
def test_unknown_ways_are_refused(ties: str, compat: str | None) -> None:
    with pytest.raises(QueryError, match=r"choose of|'paper'"):
        check_ties(ties, compat)


# --- one variable, against naive counting -------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Scores of some entities, many of them tied, and disjoint easy and hard answers."""
    size = draw(st.integers(2, 12))
    values = st.integers(-2, 2) if draw(st.booleans()) else st.floats(-9, 9, width=32)
    scores = np.array(draw(st.lists(values, min_size=size, max_size=size)), np.float64)
    kinds = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    kinds[draw(st.integers(0, size - 1))] = 2
    easy, hard = (ids(*(e for e in range(size) if kinds[e] == kind)) for kind in (1, 2))
    return scores, easy, hard


@given(worlds(), st.sampled_from(TIES))
def test_ranks_are_those_of_naive_counting(world: tuple[Any, Any, Any], ties: str) -> None:
    scores, easy, hard = world
    answers = {*easy.tolist(), *hard.tolist()}
    others = [score for entity, score in enumerate(scores) if entity not in answers]
    expected = [
        1 + sum(o > scores[h] for o in others) + SHARES[ties] * sum(o == scores[h] for o in others)
        for h in hard.tolist()
    ]
    metrics, found = one_variable(scores, easy, hard, NONE, ties=ties)
    assert found.tolist() == expected
    assert metrics["mrr"] == pytest.approx(sum(1 / r for r in expected) / len(expected))
    for bound in (1, 3, 10):
        hits = sum(r <= bound for r in expected) / len(expected)
        assert metrics[f"hit@{bound}"] == pytest.approx(hits)


@given(worlds(), st.sampled_from(TIES))
def test_ra_oracle_is_that_of_naive_sorting(world: tuple[Any, Any, Any], ties: str) -> None:
    scores, easy, hard = world
    wanted = set(hard.tolist())
    candidates = [e for e in range(len(scores)) if e not in easy.tolist()]

    def share(order: Any) -> float:
        """Of an order of the candidates, which sorting by scores keeps among the tied."""
        top = sorted(order, key=lambda e: -scores[e])[: len(wanted)]
        return len(wanted & set(top)) / len(wanted)

    found = one_variable(scores, easy, hard, NONE, ties=ties)[0]["ra_oracle"]
    if ties == "realistic":
        # By chance: the mean over all orders, of few entities.
        assume(len(candidates) <= 6)
        shares = [share(order) for order in itertools.permutations(candidates)]
        assert found == pytest.approx(sum(shares) / len(shares))
    else:
        first = ties == "optimistic"
        order = sorted(candidates, key=lambda e: (e in wanted) != first)
        assert found == pytest.approx(share(order))


@given(worlds())
def test_metrics_hang_on_the_order_of_scores_alone(world: tuple[Any, Any, Any]) -> None:
    scores, easy, hard = world
    # Ranks of the values: strictly monotone, whatever rounding does to the scores themselves.
    changed = np.unique(scores, return_inverse=True)[1].reshape(-1) * 3.0 - 100
    for ties in TIES:
        one, _ = one_variable(scores, easy, hard, NONE, ties=ties)
        other, _ = one_variable(changed, easy, hard, NONE, ties=ties)
        assert one == other


@given(worlds())
def test_optimistic_ranks_are_best_and_realistic_ones_in_the_middle(
    world: tuple[Any, Any, Any],
) -> None:
    scores, easy, hard = world
    answers = np.concatenate([easy, hard])
    best, middle, worst = (
        ranks(scores, hard, answers, ties) for ties in ("optimistic", "realistic", "pessimistic")
    )
    assert (best <= middle).all() and (middle <= worst).all()
    assert np.allclose(middle, (best + worst) / 2)


# --- joint ranks --------------------------------------------------------------------------------


def published_position(one: int, other: int, size: int) -> int:
    """EFOk-CQA's formula: the position of (r1, r2), in the two branches as printed."""
    total = one + other
    if total <= size + 1:
        return (total - 1) * (total - 2) // 2 + one
    left = 2 * size - total
    return size**2 - (left + 1) * (left + 2) // 2 + one - (total - size) + 1


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_positions_of_pairs_are_the_bounded_formula(size: int) -> None:
    pairs = list(itertools.product(range(1, size + 1), repeat=2))
    found = before(np.array(pairs), size) + 1
    assert found.tolist() == [published_position(one, other, size) for one, other in pairs]
    assert sorted(found.tolist()) == list(range(1, size**2 + 1))


@pytest.mark.parametrize(("size", "parts"), [(1, 3), (4, 1), (5, 2), (4, 3), (3, 4)])
def test_positions_are_those_of_sorting_all_tuples(size: int, parts: int) -> None:
    tuples = list(itertools.product(range(1, size + 1), repeat=parts))
    order = sorted(tuples, key=lambda row: (sum(row), row))
    found = before(np.array(tuples), size)
    assert found.tolist() == [order.index(row) for row in tuples]
    sums = np.arange(-1, parts * size + 2)
    expected = [sum(sum(row) <= total for row in tuples) for total in sums.tolist()]
    assert at_most(sums, size, parts).tolist() == expected


def test_positions_of_large_graphs_are_exact_in_64_bits() -> None:
    size = 63_361
    pairs = np.array([[size, size], [1, 1], [size, 1], [1, size], [size // 2, size]])
    expected = [published_position(one, other, size) - 1 for one, other in pairs.tolist()]
    assert before(pairs, size).tolist() == expected
    assert before(np.full((1, 3), size), size).tolist() == [size**3 - 1]


def test_too_many_tuples_for_64_bits_are_refused() -> None:
    with pytest.raises(QueryError, match="more tuples of 5 than 64-bit numbers"):
        before(np.ones((1, 5), np.int64), 14_505)


def brute_joint(
    scores: Any, answers: list[tuple[int, ...]], target: tuple[int, ...], share: float
) -> float:
    """The filtered joint rank by looking at every tuple."""
    mean = [
        [1 + sum(o > s for o in row) + (sum(o == s for o in row) - 1) / 2 for s in row]
        for row in scores.tolist()
    ]

    def key(row: tuple[int, ...]) -> tuple[float, ...]:
        own = [mean[at][entity] for at, entity in enumerate(row)]
        return sum(own), *own

    everything = itertools.product(range(scores.shape[1]), repeat=len(scores))
    others = [key(row) for row in everything if row not in answers]
    mine = key(target)
    return 1 + sum(o < mine for o in others) + share * sum(o == mine for o in others)


@st.composite
def tuple_worlds(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Scores for 1 to 3 variables, and disjoint easy and hard tuples."""
    free = draw(st.integers(1, 3))
    size = draw(st.integers(1, 6 if free < 3 else 4))
    values = st.integers(0, draw(st.integers(0, 3))) if draw(st.booleans()) else st.floats(0, 1)
    scores = draw(
        st.lists(st.lists(values, min_size=size, max_size=size), min_size=free, max_size=free)
    )
    entity = st.integers(0, size - 1)
    found = draw(st.lists(st.tuples(*[entity] * free), min_size=1, max_size=6, unique=True))
    cut = draw(st.integers(0, len(found) - 1))
    easy, hard = (np.array(part, np.int32).reshape(-1, free) for part in (found[:cut], found[cut:]))
    return np.array(scores, np.float64), easy, hard


@pytest.mark.parametrize("few", [joint_ranks.FEW, 0])
@settings(max_examples=150)
@given(world=tuple_worlds(), ties=st.sampled_from(TIES))
def test_joint_ranks_are_those_of_sorting_all_tuples(
    few: int, world: tuple[Any, Any, Any], ties: str
) -> None:
    scores, easy, hard = world
    answers = [tuple(row) for row in (*easy.tolist(), *hard.tolist())]
    expected = [brute_joint(scores, answers, tuple(row), SHARES[ties]) for row in hard.tolist()]
    # Without few values, distributions are folded by Fourier transforms.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_ranks, "FEW", few)
        found = Order(scores).filtered(np.concatenate([easy, hard]), len(easy), SHARES[ties])
    assert found.tolist() == expected


def test_folding_by_transforms_is_exact_where_counts_are_large() -> None:
    random = np.random.default_rng(0)
    scores = random.integers(0, 40, (3, 5000)).astype(np.float64)
    answers = random.integers(0, 5000, (20, 3)).astype(np.int32)
    found = Order(scores).filtered(answers, 0, 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_ranks, "FEW", 64)
        assert Order(scores).filtered(answers, 0, 0.5).tolist() == found.tolist()


@given(tuple_worlds(), st.data())
def test_ranks_by_scores_of_tuples_are_those_of_looking_at_all(
    world: tuple[Any, Any, Any], data: st.DataObject
) -> None:
    scores, easy, hard = world
    free, size = scores.shape
    everything = list(itertools.product(range(size), repeat=free))
    listed = data.draw(st.lists(st.sampled_from(everything), unique=True, max_size=8))
    values = data.draw(st.lists(st.integers(-1, 2), min_size=len(listed), max_size=len(listed)))
    table = dict(zip(listed, values, strict=True))
    answers = [tuple(row) for row in (*easy.tolist(), *hard.tolist())]
    others = [table.get(row, 0) for row in everything if row not in answers]
    expected = [
        1
        + sum(o > table.get(tuple(row), 0) for o in others)
        + 0.5 * sum(o == table.get(tuple(row), 0) for o in others)
        for row in hard.tolist()
    ]
    tuples = TupleScores(
        np.array(listed, np.int32).reshape(-1, free), np.array(values, np.float64), 0.0
    )
    found = scored_ranks(tuples, size, np.concatenate([easy, hard]), len(easy), 0.5)
    assert found.tolist() == expected


# --- several variables, by hand -----------------------------------------------------------------

# Ranks of the first variable: 0, 1, 2, 3; of the second: 3, 2, 1, 0.
TWO = np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])


def test_two_variables_of_a_hand_worked_query() -> None:
    easy, hard = rows((0, 2)), rows((0, 1), (2, 0))
    metrics, joint = several_variables(TWO, easy, hard, no_rows(2))
    # Variable 1: A = {0, 2}, hard 2; above it only 1, so rank 2. Variable 2: A = {0, 1, 2}, hard 0
    # and 1; only 3 is no answer, and it is above both: rank 2.
    assert metrics["marginal_mrr"] == 0.5
    assert metrics["marginal_hit@1"] == 0.0 and metrics["marginal_hit@3"] == 1.0
    # Components: (0, 1) has ranks 1 and 2, (2, 0) has 2 and 2.
    assert metrics["multiply_mrr"] == pytest.approx(((1 / 2) ** 0.5 + 1 / 2) / 2)
    assert metrics["multiply_hit@1"] == 0.0 and metrics["multiply_hit@3"] == 1.0
    # Unfiltered ranks (1, 3): the sum 4 stands at C(3, 2) + 1 = 4; before it are (1, 1), (1, 2) and
    # (2, 1), of which (1, 2) is the easy answer (0, 2): rank 3. (3, 4): the sum 7 > E + 1 stands at
    # 16 - 3 + 3 - 3 + 1 = 14, less the two answers before it: 12.
    assert joint.tolist() == [3, 12]
    assert metrics["joint_mrr"] == pytest.approx((1 / 3 + 1 / 12) / 2)
    # The easy entities: 0 of the first variable is first, 2 of the second has 3 above it.
    assert metrics["entailment"] == 0.5


def test_a_variable_without_hard_entities_is_left_out_of_the_marginal_metrics() -> None:
    easy, hard = rows((0, 2)), rows((0, 1))
    metrics, _ = several_variables(TWO, easy, hard, no_rows(2))
    assert metrics["marginal_mrr"] == 0.5  # of the second variable alone
    both = rows((0, 1), (1, 2))
    metrics, _ = several_variables(TWO, both, rows((0, 2)), no_rows(2))
    assert not any(key.startswith("marginal") for key in metrics)
    assert "multiply_mrr" in metrics and "joint_mrr" in metrics


def test_scores_of_tuples_decide_the_joint_rank() -> None:
    # Both variables' scores cannot tell (0, 0) and (1, 1) from (0, 1) and (1, 0); tuples can.
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    hard = rows((0, 0), (1, 1))
    _, joint = several_variables(scores, no_rows(2), hard, no_rows(2))
    assert joint.tolist() == [2, 2]
    tuples = TupleScores(hard, np.ones(2), 0.0)
    _, joint = several_variables(scores, no_rows(2), hard, no_rows(2), tuples=tuples)
    assert joint.tolist() == [1, 1]


@given(tuple_worlds())
def test_a_hit_of_the_multiply_metric_bounds_that_of_its_parts(
    world: tuple[Any, Any, Any],
) -> None:
    scores, easy, hard = world
    if len(scores) < 2:
        return
    metrics, joint = several_variables(scores, easy, hard, no_rows(len(scores)))
    assert all(0 <= value <= 1 for value in metrics.values())
    assert (joint >= 1).all()
    assert metrics["multiply_hit@1"] <= metrics["multiply_hit@3"] <= metrics["multiply_hit@10"]


# --- the published programs ---------------------------------------------------------------------


def test_published_ranks_put_ties_in_the_order_of_entities() -> None:
    assert positions(np.array([1.0, 2.0, 1.0])).tolist() == [1, 0, 2]
    metrics, found = one_variable_published(SCORES, ids(4), ids(1, 6))
    # In order: 4, 5, 1, 3, 6, 2, 0. Without the other answers 1 is second and 6 third.
    assert found.tolist() == [2, 3]
    assert metrics["mrr"] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_published_marginal_values_have_wrong_indices() -> None:
    easy, hard = no_rows(2), rows((0, 3), (1, 2))
    # All marginal ranks are 1, so that HIT@10 becomes (1 + 1 + 1) / 2.
    metrics, _ = several_variables_published(TWO, easy, hard)
    assert metrics["marginal_hit@10"] == 1.5
    assert metrics["marginal_mrr"] == 0.5
    assert several_variables(TWO, easy, hard, easy)[0]["marginal_hit@10"] == 1.0


def test_the_published_joint_formula_knows_no_end_of_the_entities() -> None:
    easy, hard = no_rows(2), rows((3, 0), (2, 1))
    _, joint = several_variables_published(TWO, easy, hard)
    # Ranks from 0: (3, 3) and (2, 2), at 6·7/2 + 3 = 24 of only 16 places, and 4·5/2 + 2.
    assert joint.tolist() == [24, 13]
    _, corrected = several_variables(TWO, easy, hard, easy)
    # (4, 4) is last of 16, less the one before; (3, 3) is at 16 - 6 + 3 - 2 + 1 = 12.
    assert corrected.tolist() == [15, 12]


def test_near_the_top_the_published_joint_rank_is_the_corrected_one() -> None:
    easy, hard = rows((0, 3)), rows((0, 2), (1, 3), (1, 2), (2, 3))
    assert (
        several_variables_published(TWO, easy, hard)[1].tolist()
        == several_variables(TWO, easy, hard, no_rows(2))[1].tolist()
    )


def test_the_published_main_table_leaves_queries_out_and_is_of_two_variables() -> None:
    assert several_variables_published(TWO, rows((0, 2)), rows((0, 1)))[0] == {}
    with pytest.raises(QueryError, match="two free variables, not for 3"):
        several_variables_published(np.zeros((3, 4)), no_rows(3), rows((0, 0, 0)))


# --- speed --------------------------------------------------------------------------------------


def test_a_test_of_the_size_of_fb15k237_takes_milliseconds_a_query() -> None:
    random = np.random.default_rng(0)
    size = 14_505
    spent: dict[str, float] = {}
    for name, free in (("one", 1), ("two", 2), ("tied", 2)):
        scores = random.random((free, size)).astype(np.float32)
        if name == "tied":
            scores = np.round(scores, 3)
        answers = np.stack([random.permutation(size)[:100] for _ in range(free)], axis=1)
        easy, hard = answers[:30].astype(np.int32), answers[30:].astype(np.int32)
        begin = time.process_time()
        for _ in range(10):
            made: Metrics
            if free == 1:
                made, _ = one_variable(scores[0], easy[:, 0], hard[:, 0], NONE)
            else:
                made, _ = several_variables(scores, easy, hard, no_rows(2))
            assert made
        spent[name] = (time.process_time() - begin) / 10
    # Measured: 0.15, 8 and 7 ms; the bounds leave room for a busy machine.
    assert spent["one"] < 0.005 and spent["two"] < 0.08 and spent["tied"] < 0.08, spent
