"""``kopl cqa train``: train a model of logical queries, or a link predictor, on a graph."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import configs_folder, free_folder, torch_is_needed
from kopl_cli.cqa.answer import graph_of

if TYPE_CHECKING:
    from cqa.models.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Train a model on the train links of a graph, or of a knowledge base: a link predictor"
        " (complex, distmult, transe, rotate), whose rows are searched afterwards, or a model of"
        " queries (betae, cone, gnn-qe and others), which are sampled for it. The best epoch is"
        " chosen on valid; --reasoner RUN then asks it."
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--graph", metavar="DIR", help="a folder or file of a graph")
    source.add_argument("--kb", metavar="KB", help="a knowledge base, its snapshot, or 'world'")
    parser.add_argument(
        "--config", metavar="NAME",
        help="the settings: a YAML file, or a shipped cqa/NAME (default: those of the model)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="change one setting: model=cone, training.epochs=3, complex.rank=64",
    )  # fmt: skip
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with an unfinished run")
    parser.add_argument("-o", "--output", metavar="RUN", help="the folder of the run")


def run(arguments: argparse.Namespace) -> int:
    """Train: 0, or 130 when a signal stopped it."""
    with torch_is_needed():
        from cqa.models.settings import read_settings
    pairs = [*arguments.set]
    for name in ("graph", "kb", "output"):
        if (value := getattr(arguments, name)) is not None:
            pairs.append(f"{name}={Path(value).absolute() if name == 'graph' else value}")
    if arguments.resume is not None:
        return _resumed(arguments.resume, arguments, pairs)
    return train(read_settings(_config(arguments.config), pairs))


def train_model(config: str, pairs: list[str]) -> int:
    """What ``kopl train --config cqa/NAME`` does."""
    with torch_is_needed():
        from cqa.models.settings import read_settings
    return train(read_settings(_config(config), pairs))


def _config(name: str | None) -> Path | None:
    """The file of a config: a path, or cqa/NAME of those that are shipped."""
    if name is None:
        return None
    shipped = configs_folder() / f"{name.removesuffix('.yaml')}.yaml"
    for path in (Path(name), shipped):
        if path.is_file():
            return path
    known = sorted(f"cqa/{path.stem}" for path in (configs_folder() / "cqa").glob("*.yaml"))
    told = f"; shipped are {', '.join(known)}" if known else ""
    raise KoplError(f"--config {name}: there is no such file{told}")


def train(settings: Settings) -> int:
    """Train by these settings in a free folder."""
    if not settings.graph and not settings.kb:
        raise KoplError(
            "nothing to learn from: give --graph DIR or --kb KB (to kopl train: --set graph=DIR or"
            " --set kb=KB)"
        )
    _check(settings.model)
    graph = graph_of(settings.graph or None, settings.kb or None)
    folder = free_folder(Path(settings.output))
    print(f"run: {folder}", flush=True)
    if _learns_links(settings.model):
        from cqa.models.links.training import train as train_links

        return _told(folder, train_links(settings, graph, folder), settings)
    from cqa.models.training import train as train_queries

    return _told(folder, train_queries(settings, graph, folder), settings)


def _resumed(folder: Path, arguments: argparse.Namespace, pairs: list[str]) -> int:
    """Go on with a run, on its own graph unless another place of it is given."""
    from cqa.models.checkpoint import read_run
    from kopl_base.settings import pairs_of

    if arguments.config is not None or arguments.output is not None:
        raise KoplError("--resume goes on with the settings of the run; leave out --config and -o")
    own = read_run(folder)[0]
    changes = pairs_of(pairs)
    settings = own.changed(changes)
    graph = graph_of(settings.graph or None, settings.kb or None)
    if _learns_links(settings.model):
        from cqa.models.links.training import go_on as go_on_links

        return _told(folder, go_on_links(folder, graph, changes), settings)
    from cqa.models.training import go_on

    return _told(folder, go_on(folder, graph, changes), settings)


def _check(name: str) -> None:
    from cqa.models.settings import model_class

    if not getattr(model_class(name), "needs_training", True):
        raise KoplError(f"{name} needs no training: kopl cqa evaluate --reasoner {name}")


def _learns_links(name: str) -> bool:
    from cqa.models.links.network import LinkModel
    from cqa.models.settings import model_class

    return issubclass(model_class(name), LinkModel)


def _told(folder: Path, found: Any, settings: Settings) -> int:
    """Say how good a model is, beside the relation's most frequent tails."""
    for line in found.lines():
        print(line)
    if not found.finished:
        print(f"go on: kopl cqa train --resume {folder}")
        return 130
    print(f"ask it: kopl cqa evaluate {settings.source} --reasoner {folder} FILE")
    return 0
