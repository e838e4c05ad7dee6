"""How names, keys, relations, values and comparisons are said, in the forms that rules ask for.

`Lexicon` makes the words of one knowledge base: guessed from its names, with annotations from a
YAML file in their place (docs/lexicon.md). `WORDS` has the class, and so the forms, of each kind of
textual argument.
"""

from generation.lexicon.annotations import Annotations, parse_annotations, read_annotations
from generation.lexicon.lexicon import Lexicon
from generation.lexicon.relations import Direction, RelationWords
from generation.lexicon.words import (
    ComparisonWords,
    ConceptWords,
    KeyWords,
    NameWords,
    NoWords,
    OperatorWords,
    QualifierWords,
    ValueWords,
    Words,
)
from kopl.types import Kind

__all__ = [
    "WORDS",
    "Annotations",
    "ComparisonWords",
    "ConceptWords",
    "Direction",
    "KeyWords",
    "Lexicon",
    "NameWords",
    "NoWords",
    "OperatorWords",
    "QualifierWords",
    "RelationWords",
    "ValueWords",
    "Words",
    "parse_annotations",
    "read_annotations",
]

WORDS: dict[Kind, type[Words]] = {
    Kind.NAME: NameWords,
    Kind.CONCEPT: ConceptWords,
    Kind.KEY: KeyWords,
    Kind.QUALIFIER_KEY: QualifierWords,
    Kind.RELATION: RelationWords,
    Kind.STRING: ValueWords,
    Kind.QUANTITY: ValueWords,
    Kind.TIME: ValueWords,
    Kind.ANY_VALUE: ValueWords,
    Kind.OPERATOR: OperatorWords,
    Kind.EXTREME: ComparisonWords,
    Kind.COMPARATIVE: ComparisonWords,
    Kind.DIRECTION: Words,
}
