"""The words of options: what functions take and what the command line offers. Imports nothing.

Each is a tuple in the order that the help shows. Where a word stands for something, such as a
reader of a form, a table keyed by these words lies beside what it stands for.
"""

from __future__ import annotations

# Benchmarks' families of query types, and those of query graphs; the others are of operator trees,
# which have forms.
FAMILIES = ("efo1", "efok", "betae")
GRAPH_FAMILIES = ("efok",)
# Forms of graphs that are read.
GRAPH_FORMATS = ("saved", "betae", "openke", "temporal", "tsv", "numpy")
# Forms of sampled queries that are written, and those that are read.
SAMPLE_FORMATS = ("jsonl", "betae", "efo1", "efok", "parquet")
INPUT_FORMATS = (*SAMPLE_FORMATS, "query2box")

# The space of query graphs: every graph once, or the published list.
SPACES = ("complete", "paper")
# How queries are drawn, their relations, and what a negation takes away.
DRAWS = ("efo1", "betae")
RELATIONS = ("uniform", "onward", "links")
NEGATIONS = ("answers", "assignments")

# Which rank an answer has among others of its score.
TIES = ("realistic", "optimistic", "pessimistic")
# What the rows of a table of results are.
ROWS = ("type", "group", "hardness")
TABLE_FORMATS = ("text", "csv", "markdown")
# Where results and shares were published: in papers on these benchmarks and graphs.
PUBLISHED_RESULTS = (
    "efo1-qa", "efok-cqa", "fb15k-237", "fb15k-237+", "nell995+", "icews18+",
)  # fmt: skip
PUBLISHED_SHARES = ("fb15k-237", "nell995")
# The column of pairs that are no answers on the graph.
NO_ANSWER = "no answer"

# Benchmarks that are balanced by hardness; `own` is of one's own graph.
BALANCED = ("fb15k237+", "nell995+", "icews18+", "own")

# How the rows of a link predictor are searched: the settings of `cqa.models.search`.
SEARCHES = ("cqd-beam", "cqd-hybrid", "qto", "fit", "cqd-co")
