"""Reports as tables for people."""

from __future__ import annotations

from kopl.cli.common import print_table
from parsers.evaluation import Report

# Accuracy by skill as published (Table 5, percent): overall, then the columns of SKILLS. They were
# measured on KQA Pro's own test questions and are shown for orientation only.
PUBLISHED = {
    "RNN KoPL (paper, KQA Pro)": (43.85, 37.71, 22.19, 65.90, 47.45, 50.04, 42.13, 34.96),
    "BART KoPL (paper, KQA Pro)": (90.55, 89.46, 84.76, 95.51, 89.30, 86.68, 93.30, 89.59),
}


def print_report(report: Report, name: str) -> None:
    """Print the accuracy by skill beside the paper's, then the other scores."""
    found = report.to_json()
    skills = found["skills"]
    rows = [
        (name, _percent(found["accuracy"]), *(_percent(s["accuracy"]) for s in skills.values()))
    ]
    rows.append(
        ("questions", str(found["questions"]), *(str(s["questions"]) for s in skills.values()))
    )
    rows += [(title, *(f"{figure:.2f}" for figure in row)) for title, row in PUBLISHED.items()]
    print_table(("execution accuracy, %", "overall", *skills), rows)
    others = [(what, _percent(share)) for what, share in found.items() if _is_share(what)]
    print_table(("share of the questions, %", ""), others)


def _is_share(what: str) -> bool:
    return what not in ("questions", "skills", "accuracy")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
