"""A language model of a GGUF file behind an address, for measurements on a GPU.

    python benchmarks/model_server.py MODEL.gguf --port 8080
    kopl train --config llm --set llm.base_url=http://localhost:8080/v1 --set output=runs/llm

It speaks the part of OpenAI's chat completions that `model: llm` uses, with a grammar in the field
`grammar` (GBNF) or a schema in `response_format`, as llama.cpp's server does. The weights are
unpacked to bfloat16 and run by transformers; grammars are kept to by llguidance. Requests that come
while others are answered join them at the next token; what prompts begin with in common is read
once. It is no server for users: it listens on loopback, and knows no key. Needs torch,
transformers, gguf, llguidance.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from llguidance.gbnf_to_lark import gbnf_to_lark
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

# Tokens of prompts that are read at once at most, for the memory that this takes.
READ_AT_ONCE = 1 << 17
# Beginnings of at least so many tokens are kept, so many of them.
SHARED, KEPT = 512, 4
LARGEST = 1 << 24  # bytes of a request
# Drawn is among the likeliest tokens that have so much of the probability together, unless a
# request says otherwise; what the authors of Qwen2.5 recommend.
TOP_P = 0.8
PATH = "/v1/chat/completions"


# What was read, in each layer of the network: keys and values.
Layers: TypeAlias = list[tuple[torch.Tensor, torch.Tensor]]


class RequestError(ValueError):
    """A request that cannot be answered as it stands."""


@dataclass(eq=False)
class Request:
    """What is asked, and what was written so far."""

    ids: list[int]
    most: int
    temperature: float
    top_p: float
    seed: int
    matcher: llguidance.LLMatcher | None
    done: Future[dict[str, Any]] = field(default_factory=Future)
    written: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)


class Model:
    """A model that writes on all replies at once; `ask` may be called from many threads."""

    def __init__(self, path: Path, device: str, rows: int) -> None:
        where: dict[str, Any] = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
        folder = str(path.parent if where else path)
        kind = torch.float32 if device == "cpu" else torch.bfloat16
        self._tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=kind, **where)
        self._model = model.to(device).eval()
        self._device, self._rows = device, rows
        self._size = model.config.vocab_size
        self._room = model.config.max_position_embeddings
        self._ends = {self._tokenizer.eos_token_id}
        self._tokens = llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=self._size)
        self._bits = torch.arange(32, dtype=torch.int32, device=device)
        self._waiting: deque[Request] = deque()
        self._changed = threading.Condition()
        # Beginnings that were read, the last used first, and the prompt that was read last.
        self._kept: list[tuple[list[int], Layers]] = []
        self._last: list[int] = []
        self.asked = 0
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a body of chat completions; raises RequestError."""
        try:
            text = self._tokenizer.apply_chat_template(
                body["messages"], add_generation_prompt=True, tokenize=False
            )
            ids = self._tokenizer(text, add_special_tokens=False).input_ids
            request = Request(
                ids, int(body.get("max_tokens") or 256), float(body.get("temperature", 1.0)),
                float(body.get("top_p", TOP_P)), int(body.get("seed") or 0), self._matcher(body),
            )  # fmt: skip
        except RequestError:
            raise
        except Exception as error:  # of templates, of many classes
            raise RequestError(f"{type(error).__name__}: {error}") from None
        if len(ids) + request.most > self._room:
            raise RequestError(f"the prompt has {len(ids)} tokens, too many of {self._room}")
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()
        return request.done.result()

    def _matcher(self, body: dict[str, Any]) -> llguidance.LLMatcher | None:
        """What keeps to the grammar of a request; None without one; raises RequestError."""
        make = llguidance.LLMatcher
        if text := body.get("grammar"):
            found = make.grammar_from_lark(gbnf_to_lark(text))
        elif (form := body.get("response_format") or {}).get("type") == "json_schema":
            found = make.grammar_from_json_schema(json.dumps(form["json_schema"]["schema"]))
        else:
            if unknown := {"structured_outputs", "guided_grammar", "ebnf"} & set(body):
                raise RequestError(f"unknown field: {', '.join(sorted(unknown))}")
            return None
        matcher = make(self._tokens, found)
        if matcher.is_error():
            raise RequestError(f"the grammar cannot be read: {matcher.get_error()[:200]}")
        return matcher

    # --- writing, in one thread ------------------------------------------------------------------

    def _work(self) -> None:
        torch.set_grad_enabled(False)
        rows = Rows()
        while True:
            begin, new = self._taken(rows)
            try:
                if new:
                    rows.join(self._read(begin, new))
                self._step(rows)
            except Exception as error:  # those that come later are to be answered
                for one in {*rows.requests, *new}:
                    one.done.set_exception(RequestError(f"{type(error).__name__}: {error}"))
                rows = Rows()

    def _taken(self, rows: Rows) -> tuple[list[int], list[Request]]:
        """Those that wait, as far as there is room, with what they begin with in common.

        Waits for one if nothing is written.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or rows.requests)
            room = self._rows - len(rows.requests)
            if not self._waiting or not room:
                return [], []
            begin = self._beginning(self._waiting[0].ids)
            new: list[Request] = []
            longest = 0
            for one in [*self._waiting]:
                if one.ids[: len(begin)] == begin and len(one.ids) > len(begin):
                    longest = max(longest, len(one.ids) - len(begin))
                    new.append(one)
                    self._waiting.remove(one)
                if len(new) == room or len(new) * longest >= READ_AT_ONCE:
                    break
        return begin, new

    def _beginning(self, ids: list[int]) -> list[int]:
        """A beginning of a prompt that was read before, or is worth reading alone; else nothing."""
        for begin, _ in self._kept:
            if ids[: len(begin)] == begin and len(ids) > len(begin):
                return begin
        others = [self._last, *(one.ids for one in self._waiting if one.ids is not ids)]
        length = max(common(ids[:-1], other) for other in others)
        return ids[:length] if length >= SHARED else []

    def _read(self, begin: list[int], new: list[Request]) -> Rows:
        """The prompts, read; what they begin with is kept."""
        self._last = new[-1].ids
        read: Layers = []
        if begin:
            kept = [one for one in self._kept if one[0] == begin]
            if not kept:
                whole = torch.tensor([begin])
                kept = [(begin, self._forward(whole, self._ones(1, len(begin)), [])[0])]
            self._kept = [*kept, *(one for one in self._kept if one[0] != begin)][:KEPT]
            read = kept[0][1]
        rests = [one.ids[len(begin) :] for one in new]
        longest = max(map(len, rests))
        ids = torch.zeros(len(new), longest, dtype=torch.long)
        mask = self._ones(len(new), len(begin) + longest)
        for at, rest in enumerate(rests):
            ids[at, longest - len(rest) :] = torch.tensor(rest)
            mask[at, len(begin) : len(begin) + longest - len(rest)] = 0
        copies = [
            (keys.expand(len(new), -1, -1, -1), values.expand(len(new), -1, -1, -1))
            for keys, values in read
        ]
        layers, logits = self._forward(ids, mask, copies)
        return Rows(new, layers, mask, logits)

    def _ones(self, rows: int, columns: int) -> torch.Tensor:
        return torch.ones(rows, columns, dtype=torch.long, device=self._device)

    def _forward(
        self, ids: torch.Tensor, mask: torch.Tensor, layers: Layers
    ) -> tuple[Layers, torch.Tensor]:
        """What is read then, and what may come next.

        ``ids`` of shape [rows, new], ``mask`` of shape [rows, read and new]; logits of shape
        [rows, vocabulary].
        """
        cache = DynamicCache()
        for number, (keys, values) in enumerate(layers):
            cache.update(keys, values, number)
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        out = self._model(
            input_ids=ids.to(self._device), attention_mask=mask, past_key_values=cache,
            position_ids=places, use_cache=True, logits_to_keep=1,
        )  # fmt: skip
        found = [(layer.keys, layer.values) for layer in out.past_key_values.layers]
        return found, out.logits[:, -1].float()

    def _step(self, rows: Rows) -> None:
        """The next token of each reply; those that end are sent."""
        logits = rows.logits
        self._forbid(rows.requests, logits)
        chosen = logits.argmax(1).tolist()
        left = []
        for at, one in enumerate(rows.requests):
            token = chosen[at] if one.temperature <= 0 else self._drawn(logits[at], one)
            ended = token in self._ends
            if not ended:
                one.written.append(token)
                if one.matcher is not None:
                    one.matcher.consume_token(token)
                    ended = one.matcher.is_stopped()
            if ended or len(one.written) >= one.most:
                self._send(one, cut=not ended)
            else:
                left.append(at)
        rows.keep(left)
        if not left:
            return
        ids = torch.tensor([[one.written[-1]] for one in rows.requests])
        rows.mask = torch.cat([rows.mask, rows.mask.new_ones(len(left), 1)], 1)
        rows.layers, rows.logits = self._forward(ids, rows.mask, rows.layers)

    def _forbid(self, requests: list[Request], logits: torch.Tensor) -> None:
        """Make impossible what no grammar goes on with."""
        guided = [at for at, one in enumerate(requests) if one.matcher is not None]
        if not guided:
            return
        bits = llguidance.torch.allocate_token_bitmask(len(guided), self._size)
        for row, at in enumerate(guided):
            llguidance.torch.fill_next_token_bitmask(requests[at].matcher, bits, row)
        words = bits.to(self._device)
        allowed = ((words[:, :, None] >> self._bits) & 1).flatten(1)[:, : self._size].bool()
        logits[guided] = logits[guided].masked_fill(~allowed, float("-inf"))

    def _drawn(self, logits: torch.Tensor, one: Request) -> int:
        """A token drawn among the likeliest, by the request's own random numbers."""
        shares, order = (logits / one.temperature).softmax(0).sort(descending=True)
        before = shares.cumsum(0) - shares
        shares = torch.where(before < one.top_p, shares, 0.0).cpu()
        return int(order[int(torch.multinomial(shares, 1, generator=one.generator))])

    def _send(self, one: Request, *, cut: bool) -> None:
        text = self._tokenizer.decode(one.written, skip_special_tokens=True)
        self.asked += 1
        one.done.set_result({
            "object": "chat.completion",
            "choices": [{
                "index": 0, "finish_reason": "length" if cut else "stop",
                "message": {"role": "assistant", "content": text},
            }],
            "usage": {"prompt_tokens": len(one.ids), "completion_tokens": len(one.written)},
        })  # fmt: skip


def common(one: Sequence[int], two: Sequence[int]) -> int:
    """How many tokens two texts begin with in common."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )


@dataclass
class Rows:
    """The replies that are written on: what was read of each stands at the right end of its row."""

    requests: list[Request] = field(default_factory=list)
    layers: Layers = field(default_factory=list)
    mask: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    logits: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def join(self, other: Rows) -> None:
        """Take others in, the shorter ones with more room at the left."""
        if not self.requests:
            self.requests, self.layers = other.requests, other.layers
            self.mask, self.logits = other.mask, other.logits
            return
        length = max(self.mask.shape[1], other.mask.shape[1])

        def both(one: torch.Tensor, two: torch.Tensor, dimension: int) -> torch.Tensor:
            def wide(part: torch.Tensor) -> torch.Tensor:
                missing = length - part.shape[dimension]
                behind = 2 * (part.dim() - 1 - dimension)
                return torch.nn.functional.pad(part, (0,) * behind + (missing, 0))

            return torch.cat([wide(one), wide(two)])

        self.layers = [
            (both(keys, more_keys, 2), both(values, more_values, 2))
            for (keys, values), (more_keys, more_values) in zip(
                self.layers, other.layers, strict=True
            )
        ]
        self.mask = both(self.mask, other.mask, 1)
        self.logits = torch.cat([self.logits, other.logits])
        self.requests = [*self.requests, *other.requests]

    def keep(self, left: list[int]) -> None:
        """Forget the other rows, and the columns that no row needs."""
        if len(left) == len(self.requests):
            return
        self.requests = [self.requests[at] for at in left]
        if not left:
            self.layers = []
            return
        at = torch.tensor(left, device=self.mask.device)
        mask = self.mask[at]
        first = int(mask.sum(0).nonzero()[0])
        self.mask, self.logits = mask[:, first:], self.logits[at]
        self.layers = [
            (keys[at][:, :, first:], values[at][:, :, first:]) for keys, values in self.layers
        ]


class Handler(BaseHTTPRequestHandler):
    """Answers requests by the server's model."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """How many replies were sent."""
        self._send(200, {"asked": self.server.model.asked})

    def do_POST(self) -> None:
        """A reply."""
        try:
            size = int(self.headers.get("content-length") or 0)
            if self.path != PATH or not 0 < size <= LARGEST:
                raise RequestError(f"POST a JSON object to {PATH}")
            body = json.loads(self.rfile.read(size))
            if not isinstance(body, dict):
                raise RequestError("the body is no JSON object")
            self._send(200, self.server.model.ask(body))
        except ValueError as error:
            self._send(400, {"error": {"message": str(error)}})

    def _send(self, status: int, item: dict[str, Any]) -> None:
        data = json.dumps(item).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing is told of each request."""


class Server(ThreadingHTTPServer):
    """Serves a model on loopback."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, model: Model) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.model = model


def main() -> int:
    """Load, serve until it is stopped."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a GGUF file, or a folder of transformers")
    parser.add_argument("--port", type=int, default=8080, help="(default: 8080)")
    parser.add_argument("--rows", type=int, default=48, help="replies at once (default: 48)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    with Server(arguments.port, Model(arguments.model, arguments.device, arguments.rows)) as server:
        print(f"{arguments.model.name} on {arguments.device} after"
              f" {time.perf_counter() - begin:.0f} s: http://127.0.0.1:{server.server_port}/v1",
              flush=True)  # fmt: skip
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
