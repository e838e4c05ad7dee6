"""Questions that people wrote, with simplified query graphs, as questions with programs."""

from parsers.human.convert import Conversion, convert
from parsers.human.records import HumanQuestion, NotConverted, part_of, read_questions
from parsers.human.schema import Schema
from parsers.human.vocabulary import vocabulary

__all__ = [
    "Conversion",
    "HumanQuestion",
    "NotConverted",
    "Schema",
    "convert",
    "part_of",
    "read_questions",
    "vocabulary",
]
