"""Questions that people wrote, with simplified query graphs, as questions with programs."""

from generation.human.convert import Conversion, convert
from generation.human.records import HumanQuestion, NotConverted, part_of, read_questions
from generation.human.schema import Schema, vocabulary

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
