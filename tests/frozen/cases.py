"""The cases: command lines, run one after the other in a folder that holds all of ``inputs/``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

# The version whose argparse wrote the records of help and wrong usage.
PYTHON = (3, 11)

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Case:
    """Commands without the leading ``kopl``; ``> FILE`` at the end takes what one prints.

    ``<server>`` is the address of a server that plays a language model.

    All files that they write are recorded, or those that a pattern of ``files`` fits. ``needs``
    names packages without which the case is skipped, ``without`` packages that it hides. Where
    ``usage`` is set, argparse words a part of the record. ``rounded`` takes the last digits off
    numbers that networks compute.
    """

    commands: tuple[str, ...]
    files: tuple[str, ...] = ("*",)
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    usage: bool = False
    rounded: bool = False


def _lines(text: str, **more: object) -> Case:
    return Case(tuple(line.strip() for line in text.strip().splitlines()), **more)  # type: ignore


# --- what several cases use ---------------------------------------------------------------------

COMMANDS = (
    "run", "translate", "sparql", "sparql query", "sparql properties", "sparql virtuoso",
    "sparql virtuoso up", "sparql virtuoso down", "sparql serve", "compare", "kb", "kb info", "kb check", "kb search", "kb show", "kb convert",
    "kb export", "kb snapshot", "kb import", "functions", "generate", "lexicon", "lexicon init",
    "lexicon check", "stats", "split", "data", "data convert", "data check", "paraphrase",
    "paraphrase export", "paraphrase import", "paraphrase model", "train", "eval", "ask", "cqa",
    "cqa graph", "cqa types", "cqa sample", "cqa answer", "cqa hardness", "cqa benchmark",
    "cqa train", "cqa evaluate", "cqa compare", "cqa ask",
)  # fmt: skip

# Over tiny.json: every function, every kind of value.
GOLDEN = [
    json.loads(line)["program"] for line in (DATA / "golden.jsonl").read_text("utf-8").splitlines()
]

WORLD = (
    "QueryName(And(Relate(Relate(Find(Danube), source country, forward), shares border with,"
    " forward), Relate(Find(Euro), currency, backward)))",
    "Count(FilterNum(FilterConcept(FindAll(), country), population, 50000000, >))",
    "SelectAmong(FilterConcept(Relate(Find(Norway), shares border with, forward), country), area,"
    " largest)",
    "QueryAttr(Find(Norway), area)",
)


def _translations(forms: Iterable[str], programs: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"translate --to {form} {quote(program)}" for program in programs for form in forms
    )


_BACK = tuple(
    line
    for number, program in enumerate(GOLDEN)
    for style in ("exact", "data")
    for line in (
        f"translate --to sparql --style {style} {quote(program)} > {number}-{style}.rq",
        f"translate --from sparql --to nested @{number}-{style}.rq",
    )
)

# Every ninetieth of EFOk's types.
EFOK = " ".join(f"efok:type{number:04}" for number in range(0, 1907, 90))

# One query in each notation, and some of each shape.
QUERIES = (
    "exists x. r1(e3,x) & r2(x,?y)",
    "exists x. r1(e3,x) & r2(x,?y) & !r3(e5,?y)",
    "r1(e3,?y) | r2(e7,?y)",
    "r0(e3,?x) & r1(?x,?y)",
    '{"o": "i", "a": [{"o": "p", "a": [[2], {"o": "e", "a": [1]}]}, {"o": "n", "a": [{"o": "p", "a": [[0], {"o": "e", "a": [4]}]}]}]}',
    '{"o": "p", "a": [[0], {"o": "p", "a": [[3], {"o": "e", "a": [3]}]}]}',
    "(((1, (2,)), (9, (4, -2))),)",
    "((3, (1,)), (7, (2,)))",
    "SELECT ?y WHERE { <e3> <r1> ?x . ?x <r2> ?y }",
)


def _training(model: str, language: str, sizes: str) -> Case:
    """A run of four steps: its losses, what it predicts with and without the constraint."""
    settings = f"model={model} language={language} kb=lands.jsonl train=questions.jsonl"
    settings += " valid=questions.jsonl test=questions.jsonl seed=3 output=run threads=1 device=cpu"
    settings += f" plots=false epochs=2 batch=12 validation=8 {sizes}"
    chosen = " ".join(f"--set {setting}" for setting in settings.split())
    return _lines(
        f"""
        train {chosen}
        eval run --both --predictions greedy.jsonl
        eval run --beams 3 --json
        eval run --execution-guided --html report.html --errors 3
        ask --run run --trace --top 3 'Which city is the capital of Arlen?'
        ask --run run --unconstrained --json 'What is the number of cities?'
        """,
        files=("history.jsonl", "steps.jsonl", "settings.json", "greedy.jsonl", "report.html"),
        needs=("torch", "safetensors"),
        rounded=True,
    )


# --- the table ----------------------------------------------------------------------------------

CASES: Mapping[str, Case] = {
    "generate-world": _lines("""
        generate --kb world -n 14 -s 1 -o some.jsonl
        generate --kb world -n 14 -s 1 --canonical -q -o canonical.jsonl
        generate --kb world -n 8 -s 2 -q --no-sparql --least 6 --levels 12 -o deep.json
        """),
    "generate-lands": _lines("""
        generate --kb lands.jsonl -n 30 -s 1 -o one.jsonl
        generate --kb lands.jsonl -n 30 -s 1 -q --workers 2 -o two.jsonl
        generate --kb lands.jsonl -n 20 -s 1 -q --canonical --workers 2 -o canonical.jsonl
        generate --kb lands.jsonl -n 12 -s 4 -q --redundant --verify-all --format kqapro -o set.json
        generate --kb lands.jsonl -n 12 -s 5 -q --shares Count=50,Verify=50 -o shares.csv
        generate --kb lands.jsonl -n 6 -s 6 -q -o -
        generate --kb lands.jsonl -n 12 -s 1 -q --shard 2/3 -o shard.jsonl
        """),
    "generate-bookshop": _lines(
        """
        kb import --mapping bookshop.map.yaml -o bookshop.kopl
        lexicon init bookshop.kopl -o words.yaml
        generate --kb bookshop.kopl -n 16 -s 1 --lexicon words.yaml -o some.jsonl
        generate --kb bookshop.kopl -n 12 -s 1 --canonical -q -o canonical.jsonl
        """,
        files=("*.jsonl", "*.yaml"),
    ),
    "question-sets": _lines("""
        stats questions.jsonl
        stats --json questions.jsonl
        split questions.jsonl -o parts
        split questions.jsonl --by compositional --shares 6,2,2 -s 3 -o by-length
        split questions.jsonl --by answers -o by-answers
        split questions.jsonl --by combinations -o by-functions
        stats parts
        data convert questions.jsonl set.json
        data convert questions.jsonl set.csv
        data convert parts kqapro --to kqapro
        data convert set.json back.jsonl
        data convert set.csv again.jsonl
        data check --kb lands.jsonl --engine oxigraph questions.jsonl
        data check --kb tiny.json questions.jsonl
        data check --kb lands.jsonl --json questions.jsonl
        """),
    "question-sets-parquet": _lines(
        """
        data convert questions.jsonl one.parquet
        split questions.jsonl -o parts
        data convert parts folder --to parquet --license cc-by-4.0
        data convert folder back --to jsonl
        generate --kb lands.jsonl -n 10 -s 3 -q --format parquet -o set
        """,
        needs=("pyarrow",),
    ),
    "translate": Case(
        _translations(("nested", "serialised", "json", "kqapro", "sparql"), GOLDEN)
        + _translations(("mermaid", "dot"), GOLDEN[-8:])
        + tuple(
            f"translate --to {form} --kb tiny.json {quote(GOLDEN[34])}"
            for form in ("mermaid", "dot", "sparql")
        )
        + (f"translate --to sparql --base http://kb.example/ {quote(GOLDEN[24])}",)
    ),
    "translate-to-and-from-sparql": Case(_BACK),
    "translate-wikidata": Case(
        tuple(
            f"translate --to sparql --encoding wikidata --properties properties.json {more}{quote(one)}"
            for more in ("", "--no-ranks --language de ")
            for one in GOLDEN
        )
    ),
    "run": Case(
        (
            *(f"run --kb tiny.json --trace {quote(program)}" for program in GOLDEN),
            *(f"run --kb tiny.json --trace --json {quote(program)}" for program in GOLDEN[::4]),
            "run --kb tiny.json --programs programs.jsonl",
            "run --kb tiny.json --programs programs.jsonl --json",
            "run --kb tiny.json --strict --json --programs programs.jsonl",
            "run --kb tiny.json --engine oxigraph --programs programs.jsonl",
            "run --kb tiny.json --engine rdflib --programs programs.jsonl",
            "run --kb lands.jsonl --max-ids 5 'Count(FindAll())'",
            "run --kb tiny.json --max-depth 1 'Count(FindAll())'",
            "compare --kb tiny.json --engines kopl,oxigraph,oxigraph-memory --programs programs.jsonl",
            "compare --kb tiny.json --engines kopl,rdflib --programs programs.jsonl --json",
        ),
        needs=("pyoxigraph", "oxrdflib"),
    ),
    "run-world": Case(
        (
            *(f"run --kb world --trace {quote(program)}" for program in WORLD),
            "kb show world Norway",
            "kb search world Danub -n 3",
            "kb info world",
        )
    ),
    "sparql": _lines(
        """
        sparql --kb tiny.json 'SELECT DISTINCT ?n WHERE { ?a <capital> ?b . ?b <pred:name> ?n . }'
        sparql query --kb tiny.json --engine kopl 'ASK { ?a <pred:name> "Paris" . }'
        sparql --kb tiny.json --rows 'SELECT ?a ?n WHERE { ?a <pred:name> ?n . } ORDER BY ?a ?n'
        sparql --kb tiny.json 'SELECT ?n WHERE { ?a <pred:name> }'
        """,
        needs=("pyoxigraph",),
    ),
    "kb": _lines("""
        kb info tiny.json
        kb info tiny.json --schema
        kb info lands.jsonl --json
        kb check tiny.json
        kb check broken.json
        kb check broken.json --json
        kb search lands.jsonl arl
        kb show tiny.json france
        kb show lands.jsonl Amber
        kb convert tiny.json tiny.jsonl
        kb convert tiny.json both.json --ends both
        kb convert lands.jsonl lands.json --spelling B
        kb convert lands.jsonl head.jsonl --ends head
        kb export tiny.json tiny.nt
        kb export tiny.json tiny.ttl
        kb export tiny.json tiny.nq --graph urn:tiny --base http://kb.example/
        kb export tiny.json terms.nt --terms
        kb export tiny.json wikidata.nt --encoding wikidata --language en
        kb export lands.jsonl lands.ttl --base http://kb.example/
        kb convert tiny.nt from-nt.json
        kb convert lands.ttl from-ttl.jsonl
        kb convert tiny.nq from-nq.json
        kb snapshot tiny.json tiny.kopl
        kb convert tiny.kopl from-snapshot.json
        functions Relate
        functions --markdown
        """),
    "kb-import": _lines("""
        kb import --draft books.csv people.csv contributions.csv -o draft.yaml
        kb import --mapping draft.yaml -o drafted.jsonl
        kb import --mapping bookshop.map.yaml -o bookshop.json
        kb check bookshop.json
        kb info bookshop.json
        kb import --from table facts.csv facts.jsonl
        kb import --from table graph/train.txt graph.jsonl
        kb import --from wikidata dump.json all.jsonl --skip-malformed
        kb import --from wikidata dump.json some.json --limit 3 --languages nb,en --external-ids --skip-malformed
        """),
    "lexicon": _lines("""
        lexicon init lands.jsonl -o words.yaml
        lexicon init tiny.json -o -
        lexicon check lands.jsonl
        lexicon check lands.jsonl words.yaml
        lexicon check tiny.json
        lexicon check world
        lexicon init lands.jsonl -o words.yaml
        """),
    "paraphrase": _lines("""
        paraphrase export questions.jsonl -o tasks.csv --pictures charts
        paraphrase export questions.jsonl -o tasks.json
        paraphrase export questions.jsonl -o judging.csv --judge anna.csv some.csv
        paraphrase export questions.jsonl -o judging.json --judge anna.csv some.csv --names reject
        paraphrase import questions.jsonl anna.csv some.csv votes-dirk.csv votes-emil.csv votes-fred.csv -o kept.jsonl --rejected rejected.jsonl --judges 3 --different 1
        paraphrase import questions.jsonl anna.csv some.csv -o all.jsonl --judges 0 --names ignore --edit-distance 0.3
        paraphrase import questions.jsonl broken.jsonl -o none.jsonl
        """),
    "paraphrase-model": _lines("""
        paraphrase model questions.jsonl -o one.jsonl --rejected left.jsonl --endpoint <server>/v1 --model m
        paraphrase model questions.jsonl -o two.jsonl --endpoint <server>/v1 --model m -n 2 -s 3 --temperature 0 --concurrency 1 --set max_tokens=90 --names warn
        paraphrase model questions.jsonl -o three.jsonl --endpoint <server>/v1 --model m --key-from NO_SUCH_KEY
        """),
    "cqa-types": _lines("""
        cqa types --family betae
        cqa types --family betae --form DNF+IU
        cqa types --family efo1
        cqa types --family efo1 --form DNF+IUd --anchors 2
        cqa types --family efo1 --counts
        cqa types --family efo1 --form DNF+d --compat paper --counts
        cqa types --family efok
        cqa types --family efok --space paper
        cqa types --family efok --limit constants=1 --limit edges=4
        cqa types --family efok --counts
        """),
    "cqa-graph": _lines("""
        cqa graph --kb lands.jsonl -o lands --shares 6,2,2 -s 3
        cqa graph --kb lands.jsonl -o times --by time --time 'start time' --no-concepts
        cqa graph --graph graph -o saved
        cqa answer --graph saved --count 'r1(e3,?y)'
        """),
    "cqa-sample": Case(
        (
            "cqa sample --graph graph --types betae -n 4 --seed 1 -o betae.jsonl",
            "cqa sample --graph graph --types betae -n 4 --seed 1 --workers 2 -o betae-2.jsonl",
            "cqa sample --graph graph --types betae -n 3 -o published.jsonl --draw betae --hard 1-80",
            "cqa sample --graph graph --types efo1 -n 1 --seed 2 -o efo1.jsonl",
            f"cqa sample --graph graph --types {EFOK} -n 2 --seed 3 -o efok.jsonl",
            f"cqa sample --graph graph --types {EFOK} -n 2 --seed 3 --workers 2 -o efok-2.jsonl",
            "cqa sample --graph graph --types efo1:type0016 2i pni -n 3 --form DNF+IU -o formed.jsonl",
            "cqa sample --graph graph --types 1p 2i 2in -n 9 --relations links --relation-share 0.5"
            " --anchor-share 0.5 --split valid -o shares.jsonl",
            "cqa sample --graph graph --types 2p 2i -n 4 --inductive 1.5 --save-graph new -o new.jsonl",
            "cqa sample --graph graph --types 1p -n 2 -o -",
        )
    ),
    "cqa-sample-forms": Case(
        (
            "cqa sample --graph graph --types betae -n 3 -o trees --format betae",
            "cqa sample --graph graph --types efo1:type0003 efo1:type0016 -n 3 -o tables --format efo1",
            f"cqa sample --graph graph --types {EFOK} -n 2 -o graphs --format efok",
            "cqa sample --graph graph --types 2i 2u -n 3 -o rows --format parquet",
            "cqa hardness --graph graph trees",
            "cqa evaluate --graph graph --reasoner observed graphs",
            "cqa evaluate --graph graph --reasoner observed tables",
        ),
        needs=("pyarrow",),
    ),
    "cqa-benchmark": _lines("""
        cqa benchmark own --graph graph -o one --pairs 20 --types 1p 2p 2i pi 2in --seed 1 --share 1
        cqa benchmark own --graph graph -o two --pairs 20 --types 1p 2p 2i pi 2in --seed 1 --share 1 --workers 2
        cqa benchmark own --graph graph -o shared --pairs 30 --types 2p 2i 2u --share 0.5 --most 8
        cqa benchmark own --graph graph -o none --pairs 3 --types 1p
        """),
    "cqa-answer": Case(
        (
            *(
                f"cqa answer --graph graph --show --count --hardness {quote(query)}"
                for query in QUERIES
            ),
            *(f"cqa answer --graph graph --json --observed {quote(query)}" for query in QUERIES),
            "cqa answer --graph graph --limit 3 --split valid 'r1(e3,?y)'",
            "cqa answer --graph graph --universe '!r1(e3,?y)'",
            "cqa graph --kb lands.jsonl -o lands",
            "cqa answer --graph lands --kb lands.jsonl --show --hardness"
            " 'Relate(Find(Arlen), shares border with, forward)'",
        )
    ),
    "cqa-hardness": _lines("""
        cqa hardness --graph graph queries.jsonl --labels labels.jsonl
        cqa hardness --graph graph queries.jsonl --report csv --easy -o easy.csv --labels easy.jsonl
        cqa hardness --graph graph queries.jsonl --compat paper --published nell995
        cqa hardness --graph graph several.jsonl --labels several-labels.jsonl
        """),
    "cqa-evaluate": _lines("""
        cqa evaluate --graph graph --reasoner random queries.jsonl
        cqa evaluate --graph graph --reasoner observed --by type queries.jsonl
        cqa evaluate --graph graph --reasoner random --by hardness --format csv queries.jsonl
        cqa evaluate --graph graph --reasoner random --seed 4 --ties pessimistic --format json -o random.json queries.jsonl
        cqa evaluate --graph graph --reasoner exact --by group --format markdown --compare random.json queries.jsonl
        cqa evaluate --graph graph --reasoner random several.jsonl
        cqa evaluate --graph graph --reasoner random --metric joint_hit@10 --metric mrr several.jsonl
        """),
    "training-pointer": _training("pointer", "kopl", "pointer.embedding=32 pointer.hidden=64"),
    "training-pointer-sparql": _training(
        "pointer", "sparql", "pointer.embedding=32 pointer.hidden=64"
    ),
    "training-rnn": _training("rnn", "kopl", "rnn.embedding=32 rnn.hidden=48 rnn.layers=1"),
    "training-rnn-sparql": _training(
        "rnn", "sparql", "rnn.embedding=32 rnn.hidden=48 rnn.layers=1"
    ),
    "training-seq2seq": _training(
        "seq2seq",
        "kopl",
        "seq2seq.name= seq2seq.hidden=32 seq2seq.layers=1 seq2seq.heads=2 seq2seq.vocabulary=400 seq2seq.longest=96",
    ),
    "training-generated": Case(
        (
            "train --set kb=lands.jsonl --set questions=60 --set seed=2 --set output=run --set threads=1"
            " --set device=cpu --set plots=false --set epochs=1 --set recombined=0.5"
            " --set pointer.embedding=16 --set pointer.hidden=16",
            "train --resume run",
        ),
        files=("history.jsonl", "sources.json", "train.jsonl", "valid.jsonl", "test.jsonl"),
        needs=("torch", "safetensors"),
        rounded=True,
    ),
    "help": Case(("--help", *(f"{command} --help" for command in COMMANDS)), usage=True),
    "usage": _lines(
        """
        nonsense
        run
        run --kb tiny.json --engine
        run 'FindAll()'
        sparql 'ASK { }'
        run --kb tiny.json --timeout 0 'FindAll()'
        translate --to latin 'FindAll()'
        generate --kb lands.jsonl -n 0 -o x.jsonl
        generate --kb lands.jsonl -n 3 -o x.jsonl --shard 3/2
        generate --kb lands.jsonl -n 3 -o x.jsonl --zero 2
        generate --kb lands.jsonl -n 3 -o x.jsonl --shares Coun=5
        generate --kb lands.jsonl -n 3 -o x.jsonl --format xml
        split questions.jsonl -o parts --by colour
        split questions.jsonl -o parts --shares 1,2
        stats --json
        data convert questions.jsonl
        cqa types --family efo2
        cqa sample --graph graph --types 1p -n 2 -o x.jsonl --hard 5-1
        cqa benchmark own --graph graph -o x --share 3
        cqa graph --graph graph -o x --shares 1,2
        paraphrase model questions.jsonl -o x.jsonl
        kb export tiny.json x.nt --to xml
        """,
        usage=True,
    ),
    "messages": _lines("""
        run --kb tiny.json 'Count('
        run --kb tiny.json 'Count(Find(Paris)'
        run --kb tiny.json 'Foo(Find(Paris))'
        run --kb tiny.json 'FilterNum(Count(FindAll()), area, 3, >)'
        run --kb tiny.json 'Relate(Find(Paris), capital, sideways)'
        run --kb tiny.json 'QueryAttr(Find(Paris))'
        run --kb tiny.json 'QueryName(Find(Nowhere))'
        run --kb tiny.json --strict 'VerifyNum(QueryAttr(Find(France), population), 67000000 metre, =)'
        run --kb tiny.json --engine sesame 'FindAll()'
        run --kb missing.json 'FindAll()'
        run --kb broken.json 'FindAll()'
        run --kb broken.jsonl 'FindAll()'
        run --kb tiny.json --programs missing.jsonl
        run --kb tiny.json --programs broken.jsonl
        run --kb tiny.json @missing.txt
        translate --from sparql --to nested 'SELECT ?x WHERE { ?x'
        translate --from sparql --to nested 'SELECT ?x WHERE { ?x <p> ?y . FILTER regex(?y, "a") }'
        translate --from sparql --to nested 'SELECT ?x ?y WHERE { ?x <capital> ?y . }'
        translate --to sparql --encoding wikidata 'FindAll()'
        translate --to sparql --encoding wikidata --properties properties.json 'FilterStr(FindAll(), colour, red)'
        translate --to sparql --encoding wikidata --properties broken.json 'FindAll()'
        sparql --kb tiny.json --engine sesame 'ASK { }'
        compare --kb tiny.json --engines kopl --programs programs.jsonl
        compare --kb tiny.json --engines kopl,sesame --programs programs.jsonl
        functions Reltae
        kb show tiny.json nobody
        kb convert tiny.json tiny.xml
        kb export tiny.json tiny.txt
        kb export tiny.json x.nt --graph urn:x
        kb export tiny.json x.nt --base nonsense
        kb check missing.json
        kb import --mapping missing.yaml -o x.kopl
        kb import --mapping properties.json -o x.kopl
        kb import books.csv x.kopl
        generate --kb lands.jsonl -n 3 -o x.jsonl --rules questions.jsonl
        generate --kb lands.jsonl -n 3 -o x.jsonl --lexicon missing.yaml
        generate --kb lands.jsonl -n 3 -o x.jsonl --lexicon properties.json
        lexicon check lands.jsonl missing.yaml
        stats missing.jsonl
        stats broken.jsonl
        stats tiny.json
        split broken.jsonl -o parts
        split missing.jsonl -o parts
        data convert broken.jsonl x.json
        data convert questions.jsonl x.xml
        data check --kb lands.jsonl broken.jsonl
        paraphrase export missing.jsonl -o tasks.csv
        paraphrase export questions.jsonl -o tasks.xml
        paraphrase import questions.jsonl missing.csv -o x.jsonl
        paraphrase model questions.jsonl -o x.jsonl --endpoint nonsense --model m
        train --config missing
        train --set colour=red
        train --set epochs=many
        train --set model=tree
        eval missing
        ask --run missing 'Who?'
        cqa answer --graph graph 'r9(e3,?y)'
        cqa answer --graph graph 'r1(e3,?y'
        cqa answer --graph graph 'r1(nobody,?y)'
        cqa answer --graph missing 'r1(e3,?y)'
        cqa sample --graph graph --types 9z -n 2 -o x.jsonl
        cqa sample --graph graph --types efok:type9999 -n 2 -o x.jsonl
        cqa sample --graph graph --types efok:type0100 -n 2 -o x --format betae
        cqa sample --graph missing --types 1p -n 2 -o x.jsonl
        cqa sample --graph graph --types 1p -n 2 -o x.jsonl --minutes 1 --split train
        cqa hardness --graph graph missing.jsonl
        cqa hardness --graph graph broken.jsonl
        cqa evaluate --graph graph --reasoner nobody queries.jsonl
        cqa evaluate --graph graph --reasoner no.module:thing queries.jsonl
        cqa evaluate --graph graph --reasoner exact --metric mrrr queries.jsonl
        cqa evaluate --graph graph --reasoner exact queries.jsonl --compare questions.jsonl
        cqa benchmark own --graph graph -o x --types 9z
        cqa benchmark own --graph graph -o x --types 1p --pairs 2
        cqa graph --graph graph -o x --by time
        cqa graph --kb lands.jsonl -o x --by time --time colour
        cqa graph --kb lands.jsonl -o x --format tsv
        """),
    "messages-missing-packages": _lines(
        """
        run --kb tiny.json --engine oxigraph 'FindAll()'
        run --kb tiny.json --engine rdflib 'FindAll()'
        sparql --kb tiny.json 'ASK { ?a <pred:name> "Paris" . }'
        compare --kb tiny.json --engines kopl,oxigraph --programs programs.jsonl
        run --engine http://localhost:1/sparql 'FindAll()'
        data convert questions.jsonl x.parquet
        stats questions.jsonl --plots charts
        data check --kb lands.jsonl --engine oxigraph questions.jsonl
        generate --kb lands.jsonl -n 3 -o x.jsonl --ray
        generate --kb lands.jsonl -n 3 -o x.jsonl --verify-all
        cqa sample --graph graph --types 1p -n 2 -o x.parquet
        """,
        without=("pyoxigraph", "rdflib", "SPARQLWrapper", "pyarrow", "matplotlib", "ray"),
    ),
}
