"""Sampling grounded queries with their answers from a graph.

`kinds` reads which types are wanted, `run` samples them into a file and `stream` one by one;
`sampler` gives what draws the queries of one type from a `Source`.

>>> from cqa.sampling.kinds import kinds
>>> from cqa.sampling.run import Plan, stream
>>> samples = stream(Plan(tuple(kinds(["2i", "pni"])), count=100, seed=1), graph)  # doctest: +SKIP
"""
