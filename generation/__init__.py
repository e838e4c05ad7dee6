"""Generation of questions with programs and answers from a knowledge base, by a grammar."""

from kopl_base.conflict import names_of, refuse_others

# Others use the names of our packages, too.
refuse_others("generation")
__dir__ = names_of("generation")

from generation.blocks import GenerationError, generate
from generation.grammar import Grammar
from generation.rules_file import load_grammar, read_grammar
from generation.splits import split

__all__ = [
    "GenerationError",
    "Grammar",
    "generate",
    "load_grammar",
    "read_grammar",
    "split",
]
