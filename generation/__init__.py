"""Generation of questions with programs and answers from a knowledge base, by a grammar."""

from generation.grammar import Grammar, load_grammar, read_grammar
from generation.pipeline import GenerationError, generate
from generation.splits import split

__all__ = [
    "GenerationError",
    "Grammar",
    "generate",
    "load_grammar",
    "read_grammar",
    "split",
]
