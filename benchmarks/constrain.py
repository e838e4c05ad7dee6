"""What constrained decoding costs for each token, and llguidance beside it.

    python -m benchmarks.constrain [--kb KB] [--questions N] [--vocabulary N] [--json OUT]

Generates questions over the knowledge base (world: 17,236 names of entities), makes a vocabulary
of byte-level pieces, and follows every program and query token by token: "cold" with a new
constraint, "warm" with one that has seen the same texts. A token costs the set of what is allowed
plus one step; processor time of one thread. llguidance, where it is installed, gets a grammar that
knows names and arguments but not which functions fit together, which is less work. Markdown goes
to standard output.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from kb import KnowledgeBase, load
from kb.values import NO_UNIT
from kopl.functions import FUNCTIONS
from kopl.sparql.from_kopl import translate
from kopl.text import read_json, write_serialised
from kopl.types import Kind
from parsers.constrain import Constraint, TokenTable, kopl_constraint, sparql_constraint

MARKS = ("<arg>", "<func>")


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kb", default="world", help="a knowledge base (default: world)")
    parser.add_argument("--questions", type=int, default=1000, help="default: 1000")
    parser.add_argument("--vocabulary", type=int, default=50_000, help="tokens (default: 50000)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="everything measured, as JSON")
    arguments = parser.parse_args()
    if arguments.questions < 1 or arguments.vocabulary < 300:
        parser.error("at least one question and 300 tokens are needed")
    kb = load(arguments.kb)
    programs = generated(arguments.kb, arguments.questions)
    texts = {
        "KoPL": [write_serialised(program) for program in programs],
        "SPARQL, data": [str(translate(p, "data", kb=kb)[0]) for p in programs],
        "SPARQL, exact": [str(translate(p, "exact", kb=kb)[0]) for p in programs],
    }
    names = [*kb.names_of_kind("entity"), *kb.names_of_kind("concept"), *kb.relations, *kb.keys]
    table = TokenTable(*vocabulary([*texts["KoPL"], *texts["SPARQL, exact"], *names],
                                   arguments.vocabulary))  # fmt: skip
    made: dict[str, Callable[[], Constraint]] = {
        "KoPL": lambda: kopl_constraint(kb, table),
        "SPARQL, data": lambda: sparql_constraint(kb, table, style="data"),
        "SPARQL, exact": lambda: sparql_constraint(kb, table, style="exact"),
    }
    rows = [measured(name, made[name], [table.split(t) for t in texts[name]]) for name in texts]
    if (peer := llguidance_rows(kb, table, texts["KoPL"])) is not None:
        rows.append(peer)
    report = {
        "names": len(kb.names_of_kind("entity")), "tokens": len(table), "rows": rows,
        "questions": len(programs), "python": platform.python_version(),
    }  # fmt: skip
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1), "utf-8")
    print(f"{report['names']:,} names, {report['tokens']:,} tokens, {len(programs):,} questions\n")
    print("| | set-up, s | tokens | cold, µs a token | warm, µs | warm with bit mask, µs |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        figures = [row["setup"], row["count"], row["cold"], row["warm"], row["mask"]]
        shown = [f"{f:.2f}" if isinstance(f, float) else "–" if f is None else f"{f:,}"
                 for f in figures]  # fmt: skip
        print(f"| {row['name']} | {' | '.join(shown)} |")


def generated(kb: str, count: int) -> list[Any]:
    """The programs of generated questions."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "questions.jsonl"
        command = [sys.executable, "-m", "kopl", "generate", "--kb", kb, "-n", str(count),
                   "-o", str(output), "-q", "--no-sparql", "--verify", "0"]  # fmt: skip
        if subprocess.run(command, check=False).returncode:
            sys.exit("the questions could not be generated; see above")
        lines = output.read_text("utf-8").splitlines()
    return [read_json(json.loads(line)["program"]) for line in lines]


def vocabulary(texts: Iterable[str], size: int) -> tuple[list[bytes | None], int]:
    """All bytes, the marks, and the commonest beginnings of words; the end comes last."""
    counts: Counter[bytes] = Counter()
    for text in texts:
        for word in text.replace(MARKS[0], "").replace(MARKS[1], "").split(" "):
            for data in (word.encode(), f" {word}".encode()):
                counts.update(data[:end] for end in range(2, min(len(data), 16) + 1))
    found = [bytes([byte]) for byte in range(256)] + [mark.encode() for mark in MARKS]
    order = sorted(counts, key=lambda piece: (-counts[piece], piece))
    found += order[: max(0, size - len(found) - 1)]
    return [*found, None], len(found)


def measured(
    name: str, make: Callable[[], Constraint], rows: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Set-up in seconds, and microseconds a token: first pass, second, second with bit masks."""
    begun = time.process_time()
    constraint = make()
    setup = time.process_time() - begun
    count = sum(map(len, rows))

    def follow(masked: bool) -> float:
        begun = time.process_time()
        for tokens in rows:
            state = constraint.start()
            for token in tokens:
                if masked:
                    constraint.mask(state)
                else:
                    constraint.allowed(state)
                state = constraint.advance(state, token)
            if not state.ended or state.lost:
                sys.exit(f"{name}: {constraint.table.text(tokens)!r} is not accepted")
        return (time.process_time() - begun) / count * 1e6

    cold = follow(False)
    warm = statistics.median(follow(False) for _ in range(3))
    return {"name": name, "setup": setup, "count": count, "cold": cold, "warm": warm,
            "mask": follow(True)}  # fmt: skip


# --- llguidance -------------------------------------------------------------------------------


class _Vocabulary:
    """The table as llguidance wants a tokenizer."""

    def __init__(self, table: TokenTable) -> None:
        self.eos_token_id = table.end
        self.bos_token_id = None
        marks = {mark.encode() for mark in MARKS}
        spelt = [table.text([n]).encode() if s and s[0] >= 0xF8 else s
                 for n, s in enumerate(table.spellings)]  # fmt: skip
        spelt[table.end] = b"</s>"
        self.tokens = [data or b"" for data in spelt]
        self.special_token_ids = [n for n, data in enumerate(spelt) if data in marks] + [table.end]
        self._table = table

    def __call__(self, text: bytes | str) -> list[int]:
        return self._table.split(text if isinstance(text, str) else text.decode())[:-1]


def llguidance_rows(kb: KnowledgeBase, table: TokenTable, texts: list[str]) -> Any:
    """The same for llguidance, or None (and a line why) where it is not installed."""
    try:
        from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
    except ImportError:
        print("llguidance is not installed (pip install llguidance): not measured\n")
        return None
    begun = time.process_time()
    tokenizer = LLTokenizer(TokenizerWrapper(_Vocabulary(table)))
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(untyped_grammar(kb)))
    if matcher.is_error():
        print(f"llguidance: {matcher.get_error()}\n")
        return None
    setup, passes = time.process_time() - begun, []
    rows = [table.split(text) for text in texts]
    for _ in range(2):
        begun = time.process_time()
        for tokens in rows:
            matcher.reset()
            for token in tokens:
                matcher.compute_bitmask()
                if not matcher.consume_token(token):
                    reason = matcher.get_error()[:200]
                    print(f"llguidance refuses {table.text(tokens)!r}: {reason}\n")
                    return None
        passes.append((time.process_time() - begun) / sum(map(len, rows)) * 1e6)
    count = sum(map(len, rows))
    return {"name": "llguidance, KoPL without typing", "setup": setup, "count": count,
            "cold": passes[0], "warm": None, "mask": passes[1]}  # fmt: skip


def untyped_grammar(kb: KnowledgeBase) -> str:
    """Calls one after another, each with arguments of the right kinds, in llguidance's Lark."""

    def one_of(texts: Iterable[str]) -> str:
        return " | ".join(json.dumps(text, ensure_ascii=False) for text in sorted(set(texts)))

    lists = {
        Kind.NAME: [*kb.names_of_kind("entity"), *kb.names_of_kind("concept")],
        Kind.CONCEPT: kb.names_of_kind("concept"),
        Kind.KEY: kb.attribute_keys,
        Kind.QUALIFIER_KEY: kb.qualifier_keys,
        Kind.RELATION: kb.relations,
    } | {kind: list(kind.choices) for kind in Kind if kind.choices}
    units = one_of(f" {unit}" for unit in kb.units if unit != NO_UNIT)
    # Its lexer does not go back: the blank behind a name must be of the name's own terminal.
    calls = [
        " ".join([f"/{function.name} ?/", *(f"arg {kind.name}" for _, kind in function.arguments)])
        for function in FUNCTIONS.values()
    ]
    lines = ['%llguidance {"no_forcing": true}', "start: call (func call)*"]
    lines += ["arg: <arg> SP?", "func: <func> SP?", f"call: {' | '.join(calls)}"]
    lines += [f'{kind.name}: ({one_of(texts)}) " "?' for kind, texts in lists.items()]
    lines += ['SP: " "', r"STRING: /[^<\n]{1,120}/", r"ANY_VALUE: /[^<\n]{1,120}/"]
    lines += [rf'QUANTITY: /[+-]?[0-9]{{1,40}}(\.[0-9]{{1,40}})?/ ({units})? " "?']
    return "\n".join([*lines, r"TIME: /-?[0-9]{1,12}([-\/][0-9]{1,2}[-\/][0-9]{1,2})? ?/"]) + "\n"


if __name__ == "__main__":
    main()
