"""Decoding that cannot go wrong: constraints on token sequences, for KoPL and for SPARQL.

A `Constraint` tells which tokens may come next (`docs/constrained-decoding.md`).
"""

from parsers.constrain.kopl import kopl_constraint
from parsers.constrain.machine import Constraint, State
from parsers.constrain.sparql import sparql_constraint
from parsers.constrain.tokens import TokenizerError, TokenTable

__all__ = [
    "Constraint",
    "State",
    "TokenTable",
    "TokenizerError",
    "kopl_constraint",
    "sparql_constraint",
]
