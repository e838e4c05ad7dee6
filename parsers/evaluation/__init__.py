"""Trained parsers judged by executing their programs: accuracy, confidence, reports of runs."""

from parsers.evaluation.accuracy import Predicts, Report, Table, evaluate
from parsers.evaluation.judging import JudgedExample, judge, skills_of

__all__ = ["JudgedExample", "Predicts", "Report", "Table", "evaluate", "judge", "skills_of"]
