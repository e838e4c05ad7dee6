"""Options of commands that ask a language model, and the model that they name."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError

if TYPE_CHECKING:
    from generation.paraphrase.model import Model

KEY = "KOPL_API_KEY"


def add_model(parser: argparse.ArgumentParser, *, asked: str, length: int = 128) -> None:
    """Declare which model is asked, and how a stopped run goes on.

    ``asked`` is what a reply is for ("a question"), ``length`` how many tokens one has by default.
    """
    from kopl_cli.common import positive, seconds

    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--endpoint", metavar="URL", help="an address that speaks OpenAI's chat completions"
    )
    which.add_argument(
        "--local", metavar="NAME", help="a model of Hugging Face: a folder or a name"
    )
    parser.add_argument("-s", "--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--temperature",
        type=_temperature,
        default=0.8,
        metavar="T",
        help="default: 0.8; 0: no chance",
    )
    parser.add_argument("--resume", action="store_true", help="go on with a stopped run")
    parser.add_argument(
        "--keep-going", action="store_true", help=f"do not stop where {asked} gets no reply"
    )
    group = parser.add_argument_group("with --endpoint")
    group.add_argument("--model", metavar="NAME", help="the model's name there")
    group.add_argument(
        "--key-from", default=KEY, metavar="VARIABLE",
        help=f"the environment variable with the key (default: {KEY})",
    )  # fmt: skip
    group.add_argument(
        "--concurrency", type=positive, default=4, metavar="N",
        help="requests at a time (default: 4)",
    )  # fmt: skip
    group.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="for one try (default: 60)"
    )
    group.add_argument(
        "--retries", type=int, default=5, metavar="N",
        help="when it is busy or cannot be reached (default: 5)",
    )  # fmt: skip
    group.add_argument(
        "--set", action="append", default=[], metavar="FIELD=JSON", dest="fields",
        help="one more field of the request, as max_tokens=200; null leaves one out",
    )  # fmt: skip
    group = parser.add_argument_group("with --local")
    group.add_argument("--batch", type=positive, default=8, metavar="N", help="default: 8")
    group.add_argument(
        "--length", type=positive, default=length, metavar="N",
        help=f"tokens of a reply (default: {length})",
    )  # fmt: skip
    group.add_argument(
        "--device", metavar="NAME", help="default: cuda where there is one, else cpu"
    )


def _temperature(text: str) -> float:
    found = float(text)
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError("a number of 0 or more was expected")
    return found


def model_of(arguments: argparse.Namespace) -> Model:
    """The model that the arguments name; raises KoplError for arguments that do not fit."""
    if arguments.local is not None:
        if arguments.model is not None:
            raise KoplError("--model names a model behind an --endpoint; --local NAME is enough")
        from generation.paraphrase.local import LocalModel

        return LocalModel(
            arguments.local, temperature=arguments.temperature, length=arguments.length,
            batch=arguments.batch, device=arguments.device,
        )  # fmt: skip
    if arguments.model is None:
        raise KoplError("--endpoint needs --model NAME: which model is asked there?")
    from generation.paraphrase.model import ChatEndpoint

    fields: dict[str, Any] = {"temperature": arguments.temperature}
    for text in arguments.fields:
        name, sign, value = text.partition("=")
        try:
            if not sign or not name:
                raise ValueError
            fields[name] = json.loads(value)
        except ValueError:
            raise KoplError(f"--set: write FIELD=JSON, as max_tokens=200, not {text!r}") from None
        if name in ("model", "messages", "n", "stream"):
            raise KoplError(f"--set: the field {name} is not yours to set")
    return ChatEndpoint(
        arguments.endpoint, arguments.model, key=os.environ.get(arguments.key_from),
        key_from=arguments.key_from, fields=fields, timeout=arguments.timeout,
        retries=arguments.retries, workers=arguments.concurrency,
    )  # fmt: skip
