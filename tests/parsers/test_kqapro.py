"""KQA Pro's files as they are published: a command for each published row, tiny here."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import json
import lzma
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generation.conversion import convert
from generation.conversion import write_kqapro as write_kqapro_list
from kb import KnowledgeBase, load
from kb.kqapro import write_kqapro
from kopl.answers import published_text
from kopl.example import BareQuestion, Example, read_examples, read_questions, write_examples
from kopl.sparql.ast import write
from kopl.sparql.from_kopl import translate
from kopl_cli import main
from kopl_cli.train import find_config
from parsers.evaluation.report import PUBLISHED, TABLE_5
from parsers.settings import read_settings

ROWS = ["kqapro-bart-kopl", "kqapro-bart-sparql", "kqapro-rnn-kopl", "kqapro-rnn-sparql"]
TINY = ["epochs=2", "threads=1", "device=cpu", "plots=false"]


@pytest.fixture(scope="module")
def published(
    small: KnowledgeBase, small_examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """kb.json, train.json, val.json and test.json (without answers) of the small examples."""
    place = tmp_path_factory.mktemp("kqapro")
    complete = [
        dataclasses.replace(
            one, sparql=write(translate(one.program, "data", kb=small)[0]),
            choices=(one.answer or "", *(f"choice {n}" for n in range(9))),
        )
        for one in small_examples
    ]  # fmt: skip
    ours = place / "ours"
    ours.mkdir()
    for part, begin, end in (("train", 0, 42), ("valid", 42, 49), ("test", 49, 56)):
        write_examples(ours / f"{part}.jsonl", complete[begin:end])
    convert(ours, place / "published", "kqapro")
    write_kqapro(small, place / "published" / "kb.json", ends="both")
    return place / "published"


@pytest.fixture(scope="module")
def bart(
    torch: Any, small_examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A tiny BART with a tokenizer in a folder, as facebook/bart-base is downloaded."""
    pytest.importorskip("transformers")
    from parsers.models.seq2seq.loading import small as small_bart
    from parsers.models.seq2seq.tokens import tokenizer_of
    from tests.parsers.conftest import quick

    torch.manual_seed(1)
    tokenizer = tokenizer_of([example.question for example in small_examples], 400)
    folder = tmp_path_factory.mktemp("bart")
    tokenizer.save_pretrained(folder)
    small_bart(quick("seq2seq", "kopl", "hidden=32").seq2seq, tokenizer).save_pretrained(folder)
    return folder


def command(*arguments: str | Path, sets: list[str] | None = None) -> int:
    pairs = (part for change in sets or () for part in ("--set", change))
    return main([*map(str, arguments), *pairs])


@pytest.fixture(scope="module")
def run(published: Path, bart: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of BART for programs, of one epoch."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    sets = [f"data={published}", f"seq2seq.name={bart}", "longest=40", f"output={folder}", *TINY]
    assert command("train", "--config", ROWS[0], sets=[*sets, "epochs=1"]) == 0
    return folder


@pytest.mark.parametrize("name", ROWS)
def test_a_command_for_each_row(
    torch: Any, published: Path, bart: Path, tmp_path: Path, name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from parsers.checkpoint import sources

    if "bart" in name:
        sizes = [f"seq2seq.name={bart}", f"longest={128 if 'sparql' in name else 40}"]
    else:
        sizes = ["rnn.hidden=16", "rnn.embedding=8", "drops=1"]
    sets = [f"data={published}", f"output={tmp_path / 'run'}", *sizes, *TINY]
    assert command("train", "--config", name, sets=sets) == 0
    told = capsys.readouterr().out
    assert re.search(rf"(?m)^knowledge base: {published}/kb\.json \(\d+ entities\)$", told)
    assert f"train: 42 questions ({published}/train.json)" in told
    assert f"valid: 7 questions ({published}/val.json): they choose the best epoch" in told
    assert f"test: 7 questions ({published}/val.json): scored" in told
    assert f"{published}/test.json has no answers: the validation questions are scored" in told
    assert "best epoch: " in told and f"on 7 questions of {published}/val.json" in told
    assert "(unconstrained decoding)" in told
    # Both kinds of decoding stand side by side, the published row below them by the same rule.
    row = " ".join(part.upper() for part in name.split("-")[1:]).replace("KOPL", "KoPL")
    words = " ".join(told.split())  # lines are wrapped
    by_skill, by_hops = told[told.index("By the published rule") :].split("right, %, by hops")
    for letter, kind in (("A", "unconstrained"), ("B", "constrained")):
        head = words[words.index(f"{letter} {tmp_path / 'run'}, {kind}: ") :]
        by_the_rule = re.search(r"by the published rule ([\d.]+) %", head)
        assert by_the_rule
        own = re.search(rf"(?m)^run {letter} (.*)", by_skill)
        assert own and len(own[1].split()) == 8 and own[1].split()[0] == by_the_rule[1]
        assert re.search(rf"(?m)^run {letter} .*", by_hops)
    [overall] = [one.overall for one in PUBLISHED if one.name == row and one.source == TABLE_5]
    assert re.search(rf"(?m)^{row} +{overall:.2f} ", by_skill)
    assert re.search(r"(?m)^BART KoPL +92.40 ", by_hops)
    assert "chose the best epoch" in words and "somewhat too high" in words
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert settings["kb"] == str(published / "kb.json") and settings["seed"] == 666
    assert sources(tmp_path / "run").test == f"{published}/val.json"
    answers = json.loads((tmp_path / "run" / "parser.json").read_text())["answers"]
    assert "Oslo" in answers


def test_the_published_settings() -> None:
    """Of the paper's Appendix H and of the published program."""
    for name in ROWS:
        settings = read_settings(find_config(name))
        training = settings.training
        assert (settings.model, settings.language) == (
            "seq2seq" if "bart" in name else "rnn", name.rpartition("-")[2],
        )  # fmt: skip
        assert (settings.seed, settings.decoding, training.validation) == (666, "both", 0)
        assert settings.output == f"runs/{name}"
        if settings.model == "seq2seq":
            assert (training.batch, training.epochs, training.learning_rate) == (16, 25, 3e-5)
            assert (training.warm_up, training.schedule, training.decay) == (
                0.1, "linear", "matrices",
            )  # fmt: skip
        else:
            assert (training.batch, training.epochs, training.learning_rate) == (64, 100, 1e-3)
            assert training.falls == (5, 50)


def test_the_leaderboard_gets_a_line_for_each_test_question(
    run: Path, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    questions = published / "test.json"
    assert command("eval", run, "--data", questions, "--predictions", tmp_path / "a.txt") == 0
    assert len((tmp_path / "a.txt").read_text("utf-8").splitlines()) == 7
    told = " ".join(capsys.readouterr().out.split())
    assert "7 of 7 questions have neither a program nor an answer" in told
    found = re.search(rf"{run}: 7 questions predicted: (\d) have an answer, (\d) failed or", told)
    assert found and int(found[1]) + int(found[2]) == 7
    assert (tmp_path / "a.txt").read_text("utf-8").splitlines().count("None") == int(found[2])
    assert f"{tmp_path / 'a.txt'}: 7 lines written, an answer each" in told
    assert "–" not in told and "right" not in told and "how predictions end" in told
    # As JSON lines, with all that is known of each.
    path = tmp_path / "p.jsonl"
    arguments = ["eval", run, "--both", "--data", questions, "--predictions", path]
    assert command(*arguments, "--memory", "0.001") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"{path}: 14 JSON lines written, a prediction each" in told
    assert told.count("7 questions predicted") == 2 and "–" not in told
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["question"] for line in lines[:7]] == [line["question"] for line in lines[7:]]
    assert [line["run"] for line in lines[6:8]] == [f"{run}, unconstrained", f"{run}, constrained"]
    assert command(*arguments[:-1], tmp_path / "b.jsonl.txt") == 2
    assert "is of one run and one kind of decoding" in capsys.readouterr().err


def test_answers_alone_are_scored(
    run: Path, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What others hold of the test questions: their answers, but no programs."""
    items = json.loads((published / "test.json").read_text("utf-8"))
    path = tmp_path / "answered.json"
    path.write_text(json.dumps([{**item, "answer": item["choices"][0]} for item in items]))
    capsys.readouterr()
    assert command("eval", run, "--data", path, "--json") == 0
    [found] = json.loads(capsys.readouterr().out)["runs"]
    assert (found["questions"], found["compared"]) == (7, 7)
    assert found["accuracy"]["default"]["overall"]["of"] == 7
    assert found["same program"]["of"] == 0


def test_folders_with_other_parts(
    torch: Any, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test part with programs is scored; of one file alone all parts are split."""
    from kopl_cli.training_questions import make

    def parts(*changes: str) -> str:
        settings = read_settings(None, [f"data={folder}", "kb=world", *changes])
        kb: Any = None
        make(kb, settings, tmp_path / "run")
        return capsys.readouterr().out

    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "run").mkdir()
    for name, source in (("train", "train"), ("test", "val")):
        shutil.copy(published / f"{source}.json", folder / f"{name}.json")
    told = parts("validation=2")
    assert f"({folder}/train.json: 1 of 10): the first 2 choose the best epoch" in told
    assert f"test: 7 questions ({folder}/test.json): scored" in told
    shutil.copy(published / "val.json", folder / "val.json")
    told = parts()
    assert f"valid: 7 questions ({folder}/val.json): they choose" in told
    assert f"({folder}/test.json): scored" in told and "too" not in told
    for name in ("val", "test"):
        (folder / f"{name}.json").unlink()
    assert f"({folder}/train.json: 8 of 10)" in parts()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_folder_of_compressed_files(
    torch: Any, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    compress: Callable[[bytes], bytes],
) -> None:  # fmt: skip
    from kopl_cli.training_questions import make

    ending = {"gzip": ".gz", "bz2": ".bz2", "lzma": ".xz"}[compress.__module__]
    (tmp_path / "run").mkdir()
    for file in published.glob("*.json"):
        (tmp_path / f"{file.name}{ending}").write_bytes(compress(file.read_bytes()))
    settings = read_settings(find_config(ROWS[0]), [f"data={tmp_path}"])
    assert settings.kb == str(tmp_path / f"kb.json{ending}")
    assert load(settings.kb).fingerprint == load(published / "kb.json").fingerprint
    make(load(settings.kb), settings, tmp_path / "run")
    told = capsys.readouterr().out
    assert f"train: 42 questions ({tmp_path}/train.json{ending})" in told
    assert f"{tmp_path}/test.json{ending} has no answers" in told


def test_published_files_without_their_knowledge_base(
    torch: Any, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "val"):
        shutil.copy(published / f"{name}.json", tmp_path / f"{name}.json")
    sets = [f"data={tmp_path}", f"output={tmp_path / 'run'}", "seq2seq.name="]
    assert command("train", "--config", ROWS[0], sets=sets) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path}/kb.json: there is no such file, plain or compressed" in told
    assert "--set kb=KB" in told and not (tmp_path / "run").exists()
    assert read_settings(None, [*sets, "kb=world"]).kb == "world"
    # A config that names a knowledge base is taken at its word; so are files that are no list.
    config = tmp_path / "own.yaml"
    config.write_text("kb: mine.kopl\n")
    assert read_settings(config, [f"data={tmp_path}"]).kb == "mine.kopl"
    for name in ("train", "val"):
        (tmp_path / f"{name}.json").rename(tmp_path / f"{name}.jsonl")
    assert read_settings(None, [f"data={tmp_path}"]).kb == "world"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["data=none"], "none: there is no such file or folder of questions"),
        (["data=EMPTY"], "there is no file of training questions"),
    ],
)
def test_folders_that_are_none(
    torch: Any, tmp_path: Path, sets: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    sets = [one.replace("EMPTY", str(tmp_path / "empty")) for one in sets]
    sets += [f"output={tmp_path / 'run'}", "seq2seq.name="]
    assert command("train", "--config", ROWS[0], sets=sets) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").iterdir())


def test_the_published_questions(kopl_data: Path, tmp_path: Path) -> None:
    """All 11,797 test questions; 30 of the validation part, as a published list and back."""
    questions = list(read_questions(kopl_data / "kqapro" / "test_questions.json"))
    assert len(questions) == 11_797
    assert all(isinstance(one, BareQuestion) and len(one.choices) == 10 for one in questions)
    gold = list(read_examples(kopl_data / "kqapro" / "gold_30.jsonl"))
    assert write_kqapro_list(tmp_path / "val.json", gold) == 30
    again = list(read_examples(tmp_path / "val.json"))
    for one, other in zip(gold, again, strict=True):
        assert (one.question, one.program, one.sparql, one.answer) == (
            other.question, other.program, other.sparql, other.answer,
        )  # fmt: skip
        # Gold answers are spelled as the leaderboard's lines are.
        assert one.answer is not None and published_text(one.answer) == one.answer
