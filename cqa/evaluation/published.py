"""Published results of reasoners, to stand beside measured ones; percent.

From the tables of EFO-1-QA (Wang, Yin and Song 2021), EFOk-CQA (2023) and "Is Complex Query
Answering Really Complex?" (2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = tuple[tuple[str, int | str], ...]
"""What a row of a table is of: names and values; "all" where types are averaged over it."""


@dataclass(frozen=True)
class Column:
    """The results of a model in one metric, by rows of the table by group or by type."""

    title: str
    metric: str
    by: str
    values: Mapping[Row, float]


def _efo1() -> list[Column]:
    groups = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)]
    rows: list[Row] = [(("anchors", anchors), ("depth", depth)) for anchors, depth in groups]
    rows.append((("anchors", "all"), ("depth", "all")))
    results = {
        "BetaE DM": (18.79, 9.72, 9.64, 12.76, 8.48, 8.10, 11.34, 8.58, 8.09, 8.48),
        "BetaE DNF+IU": (18.79, 9.72, 9.64, 14.39, 9.28, 8.86, 13.14, 9.76, 9.32, 9.67),
        "LogicE DNF+IU": (20.71, 10.70, 10.18, 15.86, 10.27, 9.67, 14.06, 10.56, 10.06, 10.46),
        "NewLook DNF+IUD": (22.31, 11.19, 10.39, 16.02, 9.46, 9.29, 11.59, 8.65, 8.96, 9.13),
    }
    return [
        Column(model, "mrr", "group", dict(zip(rows, values, strict=True)))
        for model, values in results.items()
    ]


def _graphs(free: int, constants: int | str, existential: int | str, topology: str) -> Row:
    return (
        ("free", free),
        ("constants", constants),
        ("existential", existential),
        ("topology", topology),
    )


def _efok() -> list[Column]:
    rows = [
        _graphs(1, "all", *rest)
        for rest in (
            (0, "SDAG"), (1, "SDAG"), (1, "multi"), (2, "SDAG"), (2, "multi"), (2, "cyclic"),
            ("all", "all"),
        )
    ]  # fmt: skip
    two = _graphs(2, 2, "all", "all")
    results = {
        "BetaE": (59.3, 43.8, 40.6, 33.8, 32.7, 49.3, 36.4, 43.8, 18.3, 4.5),
        "LogicE": (62.2, 46.0, 42.0, 34.2, 32.6, 49.1, 36.7, 44.6, 19.5, 5.1),
        "ConE": (63.4, 47.0, 43.5, 36.5, 34.7, 54.1, 39.0, 47.7, 21.5, 5.3),
        "CQD": (50.7, 41.4, 38.4, 33.8, 32.4, 50.2, 35.9, 42.8, 21.0, 6.4),
        "LMPNN": (65.4, 47.8, 39.6, 34.5, 30.8, 48.0, 35.8, 45.4, 22.2, 5.2),
        "FIT": (65.8, 54.7, 51.5, 44.9, 43.7, 57.5, 47.0, 54.3, 29.2, 6.4),
    }
    found = []
    for model, values in results.items():
        single = dict(zip(rows, values[:7], strict=True))
        found.append(Column(model, "hit@10", "group", single))
        for kind, value in zip(("marginal", "multiply", "joint"), values[7:], strict=True):
            found.append(Column(model, f"{kind}_hit@10", "group", {two: value}))
    return found


_TYPES = ("1p", "2p", "3p", "2i", "3i", "1p2i", "2i1p", "2u", "2u1p", "4p", "4i")


def _types(results: Mapping[str, tuple[float, ...]]) -> list[Column]:
    """By type; a row that is shorter has no results for the types that were added later."""
    return [
        Column(
            model,
            "mrr",
            "type",
            {(("type", name),): value for name, value in zip(_TYPES, values, strict=False)},
        )
        for model, values in results.items()
    ]


PUBLISHED: Mapping[str, list[Column]] = {
    "efo1-qa": _efo1(),
    "efok-cqa": _efok(),
    "fb15k-237": _types({
        "CQD": (46.7, 13.2, 7.8, 35.0, 48.5, 27.5, 20.7, 32.7, 10.5),
        "CQD-Hybrid": (46.7, 15.0, 11.0, 37.6, 52.7, 31.2, 24.0, 32.7, 10.3),
        "QTO": (46.7, 16.6, 15.6, 39.7, 54.6, 33.8, 24.7, 37.0, 12.2),
    }),
    "fb15k-237+": _types({
        "GNN-QE": (42.8, 5.2, 4.0, 6.0, 8.8, 5.6, 9.9, 32.5, 10.0, 4.3, 20.0),
        "UltraQuery": (40.6, 4.5, 3.5, 5.2, 7.2, 5.3, 10.1, 29.4, 8.3, 3.8, 16.4),
        "ConE": (41.8, 4.6, 3.9, 9.1, 10.3, 3.8, 7.9, 22.8, 6.0, 3.5, 20.3),
        "CQD": (46.7, 4.4, 2.4, 11.3, 12.8, 6.0, 11.5, 40.1, 10.6, 1.1, 23.8),
        "CQD-Hybrid": (46.7, 4.8, 3.1, 6.0, 8.6, 5.5, 12.9, 42.2, 12.0, 2.4, 17.4),
        "QTO": (46.7, 4.9, 3.7, 8.7, 10.1, 6.1, 13.5, 30.6, 11.2, 3.9, 20.2),
    }),
    "nell995+": _types({
        "GNN-QE": (53.6, 8.0, 6.0, 10.7, 13.3, 16.0, 13.5, 47.5, 9.8, 4.7, 19.4),
        "UltraQuery": (38.9, 6.1, 4.1, 7.9, 10.2, 15.8, 9.3, 28.1, 9.5, 4.2, 15.6),
        "ConE": (53.1, 7.9, 6.7, 21.8, 23.6, 14.9, 11.8, 39.9, 8.8, 5.2, 27.6),
        "CQD": (60.4, 9.6, 4.2, 18.5, 19.6, 18.9, 22.6, 46.3, 18.5, 2.0, 24.8),
        "CQD-Hybrid": (60.4, 9.0, 6.1, 12.1, 14.4, 17.4, 21.2, 46.4, 19.3, 3.5, 20.4),
        "QTO": (60.3, 9.8, 8.0, 14.6, 15.8, 17.6, 21.1, 49.1, 18.9, 7.0, 20.9),
    }),
    "icews18+": _types({
        "GNN-QE": (12.2, 0.9, 0.5, 16.1, 26.5, 19.1, 3.5, 7.6, 1.1, 0.4, 34.0),
        "UltraQuery": (6.3, 1.2, 1.2, 7.0, 11.7, 8.8, 1.3, 3.3, 1.2, 0.8, 15.9),
        "ConE": (3.5, 0.9, 0.9, 1.2, 0.5, 1.2, 1.6, 1.1, 0.9, 0.6, 0.3),
        "CQD": (16.6, 2.5, 1.5, 13.0, 19.5, 17.1, 6.7, 6.8, 5.9, 1.1, 24.0),
        "CQD-Hybrid": (16.6, 2.6, 1.5, 15.0, 25.5, 17.5, 5.8, 6.8, 5.6, 0.9, 33.2),
        "QTO": (16.6, 2.6, 1.4, 15.7, 25.0, 18.4, 6.2, 6.7, 4.9, 1.1, 31.5),
    }),
}  # fmt: skip
