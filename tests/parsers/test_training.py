"""The training core, on examples that are learnt in seconds; each model is in test_models.py."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, KoplError
from kopl.example import Example
from kopl.text import read
from tests.parsers.conftest import quick


def losses(trainer: Any) -> list[float]:
    found: list[float] = []
    original = trainer.step

    def noted(*arguments: Any) -> Any:
        step = original(*arguments)
        found.append(step.loss)
        return step

    trainer.step = noted
    trainer.run()
    return found


def test_the_same_seed_gives_the_same_network(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from parsers.training import begin

    short = settings.changed({"epochs": 2, "batch": 56, "hidden": 256, "embedding": 128})
    torch.set_num_threads(2)
    try:
        runs = [
            losses(begin(tmp_path / name, short, small, small_examples, small_examples[:5]))
            for name in ("a", "b")
        ]
    finally:
        torch.set_num_threads(1)
    assert runs[0] == runs[1]


def test_a_loss_that_is_no_number_stops(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from kopl_base.training.optimizer import TrainingError
    from parsers.training import begin

    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:5])
    with torch.no_grad():
        trainer.model.network.joined.weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"at batch 1; lower learning_rate.*batch began with"):
        trainer.run()
    assert not (tmp_path / "run" / "last.safetensors").exists()


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
@pytest.mark.parametrize(
    ("rate", "message"),
    [
        # A step that no number holds, or one behind which no score is a number any more.
        ("1e38", "the step is too large at batch 1; lower learning_rate"),
        ("1e37", "validation after batch 1: .* lower learning_rate"),
    ],
)
def test_rates_that_are_far_too_large_stop_the_training(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, model: str,
    rate: str, message: str,
) -> None:  # fmt: skip
    from kopl_base.training.optimizer import TrainingError
    from parsers.training import begin

    rates = [f"learning_rate={rate}", f"new_learning_rate={rate}", "warm_up=0", "epochs=1"]
    settings = quick(model, "kopl", *rates, "gradient_norm=0")
    trainer = begin(tmp_path / "run", settings, small, small_examples[:1], small_examples[:2])
    with pytest.raises(TrainingError, match=message):
        trainer.run()
    assert not (tmp_path / "run" / "best.safetensors").exists()


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("of", ["gradients", "weights"])
def test_gradients_and_weights_that_are_no_numbers_stop_the_training(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any,
    tmp_path: Path, of: str, number: str,
) -> None:  # fmt: skip
    """Of one number among all, where the loss is one."""
    from kopl_base.training.optimizer import TrainingError
    from parsers.training import begin

    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:2])
    weight = trainer.model.network.joined.weight
    if of == "gradients":
        weight.register_hook(lambda grad: grad.index_fill(0, torch.tensor(3), float(number)))
    else:

        def spoil(*_: object) -> None:
            with torch.no_grad():
                weight[3, 5] = float(number)

        trainer.optimizer.optimizer.register_step_post_hook(spoil)
    with pytest.raises(TrainingError, match=f"the {of} are no numbers any more at batch 1; lower"):
        trainer.run()


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
def test_asking_a_network_whose_weights_are_no_numbers(
    torch: Any, model: str, runs: Any, small: KnowledgeBase
) -> None:
    from parsers.checkpoint import restore
    from parsers.models.base import NotFiniteError

    found = restore(runs(model, "kopl"), small)
    with torch.no_grad():
        for parameter in found.network.parameters():
            parameter.fill_(float("nan"))
    for beams in (1, 3):
        for constrained in (True, False):
            with pytest.raises(NotFiniteError, match="scores are no numbers"):
                found.predict(["What is the area of Fiji?"], beams=beams, constrained=constrained)


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
@pytest.mark.parametrize("scale", [1e4, 1e9])
def test_asking_a_network_whose_weights_are_far_too_large(
    torch: Any, model: str, scale: float, runs: Any, small: KnowledgeBase
) -> None:
    """Whatever it scores, only what is allowed is written, or it is told as no numbers."""
    from parsers.checkpoint import restore
    from parsers.models.base import NotFiniteError

    found = restore(runs(model, "kopl"), small)
    with torch.no_grad():
        for parameter in found.network.parameters():
            parameter.mul_(-scale)
    for beams in (1, 3):
        with contextlib.suppress(NotFiniteError):
            [predictions] = found.predict(["What is the area of Fiji?"], beams=beams)
            for one in predictions:
                assert one.error is None or "goes on after" in str(one.error), one


@pytest.mark.parametrize("kind", ["machine", "allocator", "device"])
def test_too_little_memory_says_what_to_lower(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any,
    tmp_path: Path, kind: str,
) -> None:  # fmt: skip
    from kopl_base.training.optimizer import TrainingError
    from parsers.training import begin

    error = {
        "machine": MemoryError(),
        "allocator": RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to …"),
        "device": torch.OutOfMemoryError("CUDA out of memory"),
    }[kind]
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:5])

    def full(batch: object) -> None:
        raise error

    trainer.optimizer.network = full
    with pytest.raises(TrainingError, match=r"batch 1 \(8 examples.*training.part to 4 or less"):
        trainer.run()


def test_other_errors_are_not_taken_for_too_little_memory(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from parsers.training import begin

    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:5])

    def broken(batch: object) -> None:
        raise RuntimeError("shapes do not fit")

    trainer.optimizer.network = broken
    with pytest.raises(RuntimeError, match="shapes"):
        trainer.run()


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ([], {0: 0.01, 99: 1 - 99 / 1000, 500: 0.5, 999: 0.02}),  # slope, warm-up of 100 steps
        (["schedule=constant", "warm_up=0"], {0: 1.0, 999: 1.0}),
        (["schedule=linear", "warm_up=0.1", "floor=0"], {0: 0.01, 99: 1.0, 100: 1.0, 550: 0.5}),
        (
            ["schedule=steps", "drops=5,50", "epochs=100", "warm_up=0"],  # ten steps an epoch
            {0: 1.0, 49: 1.0, 50: 0.1, 499: 0.1, 500: 0.01, 999: 0.01},
        ),
    ],
)
def test_learning_rates(torch: Any, changes: list[str], rates: dict[int, float]) -> None:
    from kopl_base.training.optimizer import rate_at
    from parsers.settings import read_settings

    training = read_settings(None, changes).training
    for done, rate in rates.items():
        assert rate_at(done, 1000, training) == pytest.approx(rate)


def test_weight_decay_may_spare_biases_and_norms(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from parsers.training import begin

    data = (small_examples, small_examples[:1])
    sizes = ["name=", "new_learning_rate=0.002", "weight_decay=0.5"]
    plain = begin(tmp_path / "a", quick("seq2seq", "kopl", *sizes), small, *data).optimizer
    assert [group["weight_decay"] for group in plain.optimizer.param_groups] == [0.5]
    spared = quick("seq2seq", "kopl", *sizes, "decay=matrices")
    groups = begin(tmp_path / "b", spared, small, *data).optimizer.optimizer.param_groups
    assert [(group["lr"], group["weight_decay"]) for group in groups] == [(0.002, 0.5), (0.002, 0)]
    assert all(one.ndim > 1 for one in groups[0]["params"])
    assert all(one.ndim == 1 for one in groups[1]["params"])
    assert sum(len(group["params"]) for group in groups) == len(
        plain.optimizer.param_groups[0]["params"]
    )


def test_tf32_is_for_the_training_only(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """No result on a CPU depends on it; what follows the training computes exactly again."""
    from parsers.training import begin, joined

    settings = quick("seq2seq", "kopl", "precision=tf32", "epochs=1", "batch=28")
    group = joined(settings)
    try:
        assert torch.get_float32_matmul_precision() == "high"
        trainer = begin(tmp_path, settings, small, small_examples, small_examples[:1], group)
        assert trainer.run()
    finally:
        group.close()
    assert torch.get_float32_matmul_precision() == "highest"


def test_starting_from_another_run(
    torch: Any, small_examples: list[Example], trained: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Other questions and another knowledge base: what has the same name is taken over."""
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import restore_anywhere
    from parsers.training import begin, check

    builder = Builder()
    builder.add_concept("country", "country")
    for name in ("Norway", "Peru", "Laos"):
        builder.add_entity(name, name, ["country"])
        builder.add_attribute(name, "code", name[:2].upper())
        builder.add_attribute(name, "motto", "All for Norway")
    other = builder.build()
    questions = [
        Example(f"What is the {key} of {name}?", read(f'QueryAttr(Find("{name}"), {key})'))
        for name in ("Norway", "Peru", "Laos") for key in ("code", "motto")
    ]  # fmt: skip
    settings = quick("pointer", "kopl", f"start_from={trained}", "epochs=1")
    new: Any = begin(tmp_path / "new", settings, other, questions, questions[:1]).model
    assert "rows of its vocabularies" in capsys.readouterr().out
    old: Any = restore_anywhere(trained, other)

    def row(model: Any, table: str, text: str) -> Any:
        name, _, key = table.partition(".")
        return getattr(getattr(model.network, name), key)[model.tables()[table].index(text)]

    texts = ["function: Count", "key: code", "<begin>"]
    for table, text in [("words.weight", "norway"), *(("actions.weight", text) for text in texts)]:
        assert torch.equal(row(new, table, text), row(old, table, text))
    assert "motto" not in old.tables()["words.weight"]
    assert torch.equal(new.network.joined.weight, old.network.joined.weight)
    unfinished = tmp_path / "unfinished"
    shutil.copytree(trained, unfinished)
    (unfinished / "best.safetensors").unlink()
    for changes, message in (
        (["hidden=32"], "hidden is 32 here, but 64 there"),
        (["model=rnn"], "a pointer model, but this is a rnn"),
        ([f"start_from={tmp_path / 'none'}"], "no such run"),
        ([f"start_from={unfinished}"], "no weights yet"),
    ):
        wrong = quick("pointer", "kopl", f"start_from={trained}", *changes)
        with pytest.raises(CheckpointError, match=message):
            check(wrong)  # before the data are made
        with pytest.raises(CheckpointError, match=message):
            begin(tmp_path / "wrong", wrong, other, questions, questions[:1])
    assert not (tmp_path / "wrong").exists()
    # The programs of a run may be written in the other language.
    check(quick("pointer", "sparql", f"start_from={trained}"))


@pytest.mark.parametrize(("model", "language"), [("rnn", "sparql"), ("seq2seq", "kopl")])
def test_starting_from_a_run_begins_where_it_ended(
    model: str, language: str, runs: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path: Path,
) -> None:  # fmt: skip
    """Without another step, the answers are those of the run."""
    from parsers.checkpoint import restore
    from parsers.training import begin

    folder = runs(model, language)
    settings = quick(model, language, f"start_from={folder}")
    new = begin(tmp_path / "new", settings, small, small_examples, small_examples[:1]).model
    questions = [example.question for example in small_examples[::6]]
    assert new.predict(questions) == restore(folder, small).predict(questions)


def test_history_and_pictures(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra 'plots')")
    from kopl_base.training.history import read_history, read_steps
    from parsers.plots import write_plots

    epochs, steps = read_history(trained), read_steps(trained)
    assert [record["epoch"] for record in epochs] == list(range(1, 41))
    assert epochs[-1]["step"] == steps[-1]["step"] == 40 * 7
    assert epochs[-1]["accuracy"] == 1.0 and epochs[-1]["loss"] < epochs[0]["loss"] / 10
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("history.jsonl", "steps.jsonl"):
        shutil.copy(trained / name, copy)
    for path in write_plots(copy):
        assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(KoplError, match="no history"):
        write_plots(tmp_path)


@pytest.mark.parametrize(
    ("change", "package"), [("tensorboard=true", "tensorboard"), ("wandb=x", "wandb")]
)
def test_trackers_that_are_not_installed(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, change: str, package: str,
) -> None:  # fmt: skip
    from parsers.training import begin

    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    settings = quick("pointer", "kopl", change)
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:5])
    with pytest.raises(KoplError, match=f"pip install {package}"):
        trainer.run()


def test_figures_go_to_the_trackers(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By stand-ins for the two packages."""
    from parsers.training import begin

    logged: list[tuple[str, int]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder.endswith("tensorboard")

        def add_scalar(self, name: str, value: float, step: int) -> None:
            logged.append((name, step))

        def close(self) -> None:
            logged.append(("closed", 0))

    class Run:
        def log(self, figures: dict[str, float], step: int) -> None:
            logged.extend((f"wandb {name}", step) for name in figures)

        def finish(self) -> None:
            logged.append(("finished", 0))

    def init(**options: Any) -> Run:
        assert options["project"] == "p" and options["config"]["training"]["epochs"] == 2
        return Run()

    writers = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", writers)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    settings = quick("pointer", "kopl", "tensorboard=true", "wandb=p", "epochs=2", "batch=2")
    begin(tmp_path / "run", settings, small, small_examples, small_examples[:5]).run()
    assert [step for name, step in logged if name == "epoch/validation"] == [28, 56]
    assert [step for name, step in logged if name == "train/loss"] == [20, 28, 48, 56]
    names = {name for name, _ in logged}
    assert {"wandb epoch/validation", "wandb train/rate", "closed", "finished"} <= names


def test_an_empty_question_is_refused(trained: Path) -> None:
    from parsers.parser import Parser

    with pytest.raises(KoplError, match="empty"):
        Parser.load(trained).ask("  ")


def test_unconstrained_decoding_needs_training_without_masks(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from parsers.evaluation import evaluate
    from parsers.training import begin

    settings = quick("pointer", "kopl", "pointer.masked=false", "epochs=25")
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:1])
    trainer.run()
    for constrained in (True, False):
        report = evaluate(trainer.model, small_examples, (), constrained=constrained)
        assert report.accuracy == 1.0


def test_a_run_on_another_knowledge_base_is_refused(trained: Path) -> None:
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.parser import Parser

    other = Builder()
    other.add_entity("x", "X")
    with pytest.raises(CheckpointError, match="another knowledge base"):
        Parser.load(trained, other.build())


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: …"),
              RuntimeError("Storage size calculation overflowed with sizes=[…]")],
)  # fmt: skip
def test_a_model_that_is_too_large_says_what_to_lower(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, error: Exception,
) -> None:  # fmt: skip
    from kopl_base.training.optimizer import TrainingError
    from parsers.models.pointer.model import PointerModel
    from parsers.training import begin

    def full(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(PointerModel, "create", full)
    with pytest.raises(TrainingError, match=r"out of memory .* lower the model's sizes"):
        begin(tmp_path / "run", quick(), small, small_examples, small_examples[:5])


def test_scores_by_skill(small_examples: list[Example]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
    from parsers.evaluation import skills_of

    by_question = {example.question: example for example in small_examples}
    verify = by_question["Was Norway founded in 1905?"]
    assert skills_of(verify, frozenset(["yes"])) == {"verify"}
    assert skills_of(verify, frozenset(["no"])) == {"verify", "zero-shot"}
    count = by_question["How many countries are larger than 18,274 square kilometres?"]
    assert skills_of(count, frozenset(["7"])) == {"count", "multi-hop"}
    qualifier = by_question["Since when is Oslo the capital of Norway?"]
    assert skills_of(qualifier, frozenset(["1905"])) == {"qualifier"}


def test_a_failed_program_scores_nothing(small: KnowledgeBase) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
    from kopl.text import read
    from parsers.evaluation import judge
    from parsers.languages import KoplLanguage

    language = KoplLanguage(small)
    gold = Example("?", read("VerifyStr(QueryAttr(Find(Norway), code), x)"), "no")
    wrong = judge(gold, language.of_program(read("Count(Count(FindAll()))")), language)
    assert (wrong.right, wrong.published) == (False, False)
    assert wrong.error is not None and wrong.error.startswith("type")
