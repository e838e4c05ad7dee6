"""``kopl train``: generate questions, train a parser on them and score it.

Without options: questions over the bundled knowledge base, a small network on two CPU cores in a
few minutes, scored on held-out questions by executing its programs. On several devices:
``torchrun --nproc-per-node N train.py …`` or ``accelerate launch train.py …``; from an installed
package ``-m kopl train`` stands for ``train.py``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kb import load
from kopl.example import read_examples
from kopl_base.errors import KoplError, near_names
from kopl_base.training.clock import Clock, now
from kopl_cli.calibration import calibrate_for_asking
from kopl_cli.common import configs_folder, free_folder, torch_is_needed
from kopl_cli.cqa.train import train_model
from kopl_cli.eval import score
from kopl_cli.training_time import Scoring, scoring_in_time

if TYPE_CHECKING:
    from parsers.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--config", metavar="NAME",
        help=f"the settings: a shipped config ({', '.join(shipped_configs())}) or a YAML file of"
        " one's own (default: the shipped config default)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting"
    )
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with an unfinished run")


def shipped_configs() -> list[str]:
    """The names of the configs that come with the toolkit."""
    return sorted(path.stem for path in configs_folder().glob("*.yaml"))


def find_config(name: str) -> Path:
    """The YAML file of that path, or the shipped config of that name (``tiny`` or ``tiny.yaml``).

    Raises KoplError with the names of the shipped ones.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        return path
    shipped = shipped_configs()
    if (stem := name.removesuffix(".yaml")) in shipped:
        return configs_folder() / f"{stem}.yaml"
    near = near_names(path.stem, shipped)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise KoplError(
        f"--config {name}: there is no such file, and no config of that name is shipped{hint};"
        f" shipped are {', '.join(shipped)}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read the settings, prepare the data, train, evaluate: 0, or 130 when a signal stopped it."""
    if arguments.resume and arguments.config:
        raise KoplError("--resume goes on with the settings of the run; leave out --config")
    if (arguments.config or "").startswith("cqa/") and not Path(arguments.config).exists():
        # A model of logical queries, which has settings of its own.
        return train_model(arguments.config, arguments.set)
    moment = now()
    with torch_is_needed():
        from generation.recombination import recombined
        from kopl_base.settings import pairs_of
        from kopl_base.training.distributed import use_threads
        from kopl_cli import training_questions
        from parsers import training
        from parsers.checkpoint import lasting, load_own, read_run
        from parsers.registry import model_class
        from parsers.settings import read_settings

    begin = time.monotonic()
    if arguments.resume:
        folder = arguments.resume
        settings = training.resumed(read_run(folder)[0], pairs_of(arguments.set))
    else:
        name = arguments.config
        config = configs_folder() / "default.yaml" if name is None else find_config(name)
        settings = read_settings(config, arguments.set)
    # The run is to be found, and to go on, from any folder.
    settings = settings.changed(
        {"kb": lasting(settings.kb), "beside": training_questions.lasting_beside(settings)}
    )
    use_threads(settings.threads)
    group = training.joined(settings)
    clock = Clock(group.device, settings.threads, training_questions.workers(settings), moment)
    try:
        if not arguments.resume:
            training_questions.check(settings)
            training.check(settings)
        if arguments.resume:
            kb = load_own(folder, settings.kb, "--set kb=KB")
        else:
            kb = load(settings.kb)
        kbs_beside = training_questions.load_beside(settings, arguments.resume)
        training_questions.check_apart(kb, kbs_beside, settings)
        if not arguments.resume:
            folder = group.first(lambda: free_folder(Path(settings.output)))
            group.say(f"run: {folder}")
            group.say(f"knowledge base: {settings.kb} ({kb.entity_count} entities)")
            given = settings
            settings = group.first(lambda: training_questions.make(kb, given, folder, clock))
            group.first(lambda: training_questions.make_beside(kbs_beside, settings, folder))
        train, valid = (
            list(read_examples(folder / f"{part}.jsonl")) for part in ("train", "valid")
        )
        after = scoring_of(folder, settings, len(valid))
        valid = list(settings.training.choosing(valid))
        beside = [
            training.BesideQuestions(
                one,
                list(read_examples(training_questions.beside_file(folder, number, "train"))),
                settings.training.choosing(
                    list(read_examples(training_questions.beside_file(folder, number, "valid")))
                ),
            )
            for number, one in enumerate(kbs_beside, 1)
        ]
        if wanted := round(settings.training.recombined * len(train)):
            longer = list(recombined(train, wanted, settings.seed))
            group.say(f"recombined: {len(longer)} questions made of the training part")
            train += longer
        if not model_class(settings.model).trains:
            group.first(lambda: training.made(folder, settings, kb, train))
            group.say(f"nothing is trained: {len(train)} questions are its examples")
            group.say(f"score it: kopl eval {folder}; ask it: kopl ask --run {folder} QUESTION")
            return 0
        if arguments.resume:
            trainer = training.go_on(
                folder, kb, train, valid, group, clock, after.cost, settings, beside
            )
        else:
            trainer = training.begin(
                folder, settings, kb, train, valid, group, clock, after.cost, beside
            )
        finished = trainer.run()
    finally:
        group.close()
    if finished and group.main:
        print(_chosen(folder, settings, len(valid)))
        after, told = scoring_in_time(after, trainer)
        if told:
            print(told, flush=True)
        score(
            folder, folder / "test.jsonl", kb=kb, brief=True, paper=settings.paper,
            first=after.tested, fitted=after.fitted,
            constrained=[way == "constrained" for way in _ways(settings)],
        )  # fmt: skip
        calibrate_for_asking(folder, kb, after.asking)
        if pictures := [str(one) for one in pictures_of(folder) if settings.plots]:
            print(f"pictures: {', '.join(pictures)}")
        print(f"{time.monotonic() - begin:.0f} s in all; ask it: kopl ask --run {folder} QUESTION")
        if trainer.stopped:
            print(f"{trainer.stopped}; go on:")
            print(f"  kopl train --resume {folder} --set training.minutes=0")
    return 0 if finished else 130


def _ways(settings: Settings) -> tuple[str, ...]:
    """The kinds of decoding that a run is scored by."""
    both = settings.decoding == "both"
    return ("unconstrained", "constrained") if both else (settings.decoding,)


def scoring_of(folder: Path, settings: Settings, validation: int) -> Scoring:
    """What is predicted after a training, where there is time for all."""
    from parsers.evaluation.confidence import ASKING, MOST

    try:
        with open(folder / "test.jsonl", "rb") as file:
            tested = sum(1 for _ in file)
    except FileNotFoundError:
        raise KoplError(
            f"{folder / 'test.jsonl'}: there is no such file; put it back, or begin a new run"
        ) from None
    return Scoring(tested, min(MOST, validation), min(ASKING, validation), len(_ways(settings)))


def pictures_of(folder: Path) -> list[Path]:
    """The pictures of a run that are there."""
    return [path for name in ("loss", "accuracy") if (path := folder / f"{name}.png").exists()]


def _chosen(folder: Path, settings: Settings, count: int) -> str:
    """Which epoch is the best one, and by what it was chosen."""
    from kopl_base.training.history import read_history
    from parsers.checkpoint import sources

    history = read_history(folder)
    best = max(history, key=lambda record: (record["validation"], record["epoch"]))
    measure = "exact match" if settings.training.metric == "program" else "execution accuracy"
    way = "constrained" if settings.decoding == "constrained" else "unconstrained"
    return (
        f"best epoch: {best['epoch']} of {settings.training.epochs}, by {measure} ({way}"
        f" decoding)\n  on {count} questions of {sources(folder).valid}"
    )
