"""Questions that people wrote, with simplified query graphs, as questions with programs."""

from generation.human.convert import Conversion, convert
from generation.human.records import HumanQuestion, NotConverted, part_of, read_questions
from generation.human.schema import GraphSchema, vocabulary

__all__ = [
    "Conversion",
    "GraphSchema",
    "HumanQuestion",
    "NotConverted",
    "convert",
    "part_of",
    "read_questions",
    "vocabulary",
]
