"""The questions of a run: generated, split from a file, or the parts of a folder as published."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kb import KnowledgeBase, load
from kopl.example import Asked, BareQuestion, Example, read_examples, read_questions, write_examples
from kopl_base.errors import KoplError, ReadError, SettingsError, counted
from kopl_base.stream import writing
from kopl_base.training.clock import TOLD, Clock, cores
from kopl_cli.training_time import MAKING, Making
from parsers.checkpoint import SOURCES, Sources, lasting, load_own
from parsers.corrections import is_corrections, learnable
from parsers.registry import model_class
from parsers.settings import BesideKb, Settings

# A run's questions without answers, where its data have some.
OUTSIDE = "outside.jsonl"


@dataclass(frozen=True)
class Questions:
    """The questions of a run by part, and what is to be said of them."""

    train: Sequence[Example]
    valid: Sequence[Example]
    test: Sequence[Asked]
    sources: Sources
    remark: str = ""
    outside: Sequence[BareQuestion] = ()  # those that say why they have no answer


def check(settings: Settings) -> None:
    """Raise ReadError where the file or folder of questions is not there, before any work."""
    if settings.data and not Path(settings.data).exists():
        raise ReadError(
            "there is no such file or folder of questions; name it with --set data=PATH",
            source=settings.data,
        )
    for one in settings.beside:
        if one.questions and not Path(one.questions).is_file():
            raise ReadError(
                f"there is no such file of questions over {one.kb}; beside names it as"
                f" KB=FILE{_IN_A_LIST}",
                source=one.questions,
            )
        if one.questions:  # before other questions are made, which takes minutes
            for _ in read_examples(one.questions):
                pass


# What beside is told in with commas and equals signs cannot say every path.
_IN_A_LIST = "; paths with ',' or '=' stand in a list: 'beside=[{kb: \"KB\", questions: \"FILE\"}]'"


def lasting_beside(settings: Settings) -> tuple[BesideKb, ...]:
    """The knowledge bases beside a run's own, and their questions, as called from any folder."""
    return tuple(
        BesideKb(lasting(one.kb), one.questions and str(Path(one.questions).resolve()))
        for one in settings.beside
    )


def load_beside(settings: Settings, folder: Path | None = None) -> list[KnowledgeBase]:
    """The knowledge bases beside a run's own; ``folder``: of that run, which goes on.

    Raises ReadError for one that cannot be read, and CheckpointError where it is no longer there.
    """
    found = []
    for one in settings.beside:
        if folder is not None:
            found.append(
                load_own(folder, one.kb, "--set beside=KB, for several with commas between")
            )
            continue
        try:
            found.append(load(one.kb))
        except ReadError as error:
            if Path(one.kb).exists():
                raise
            raise ReadError(
                f"{error.message}; beside names it{_IN_A_LIST}", source=one.kb
            ) from None
    return found


def check_apart(kb: KnowledgeBase, beside: Sequence[KnowledgeBase], settings: Settings) -> None:
    """Raise SettingsError where ``beside`` names a knowledge base that the run learns over already.

    A run tells those that it knows apart by what they say.
    """
    known = {kb.fingerprint: settings.kb}
    for found, named in zip(beside, settings.beside, strict=True):
        if found.fingerprint in known:
            raise SettingsError(
                f"beside names {named.kb}, which is the same knowledge base as"
                f" {known[found.fingerprint]}; each is learnt over once"
            )
        known[found.fingerprint] = named.kb


def make(
    kb: KnowledgeBase, settings: Settings, folder: Path, clock: Clock | None = None
) -> Settings:
    """Write the parts train, valid and test into a run and say where they come from.

    Gives the settings, which say how many questions were generated: by the ``clock`` of the
    command, they may be fewer, as many as a share of ``training.minutes`` is enough for.
    Raises KoplError for questions that cannot be read, and for a part without any.
    """
    found, settings = _questions(kb, settings, folder, clock)
    parts = {"train": found.train, "valid": found.valid, "test": found.test}
    for name, part in parts.items():
        if not part:  # before anything is written
            total = sum(map(len, parts.values()))
            raise KoplError(f"{total} questions are too few to split; the {name} part is empty")
    purposes = {"train": "", "valid": _choosing(settings, len(found.valid)), "test": ": scored"}
    for name, source in asdict(found.sources).items():
        count = write_examples(folder / f"{name}.jsonl", parts[name])
        print(f"{name}: {counted(count, 'question')} ({source}){purposes[name]}")
    if found.outside:
        count = write_examples(folder / OUTSIDE, found.outside)
        print(f"without answers: {counted(count, 'question')}, by which it learns to be silent")
    if found.remark:
        print(found.remark)
    with writing(folder / SOURCES) as file:
        json.dump(asdict(found.sources), file, ensure_ascii=False)
    return settings


def make_beside(beside: Sequence[KnowledgeBase], settings: Settings, folder: Path) -> None:
    """Write the questions of the knowledge bases beside a run's own: a part to train and to choose.

    Raises KoplError for questions that cannot be read, or that are too few.
    """
    from generation.splits import split

    for number, (kb, one) in enumerate(zip(beside, settings.beside, strict=True), 1):
        if one.questions:
            examples = list(read_examples(one.questions))
        else:
            own = settings.changed({"kb": one.kb, "seed": (settings.seed + 1 + number) % 2**63})
            count, profile, noise = settings.beside_questions, settings.profile, settings.noise
            examples, _ = made(kb, own, folder, count, profile, (0.0, 0.0), noise)
        parts = dict(zip(("train", "valid"), split(examples, settings.seed, (9, 1)), strict=True))
        for part, found in parts.items():
            if not found:
                raise KoplError(
                    f"{len(examples)} questions over {one.kb} are too few to split; the {part}"
                    " part is empty"
                )
            write_examples(beside_file(folder, number, part), found)
        counts = " and ".join(f"{len(found)} to {part}" for part, found in parts.items())
        print(f"beside: {one.kb} ({one.questions or 'generated'}): {counts}", flush=True)


def beside_file(folder: Path, number: int, part: str) -> Path:
    """The file of a part of the questions over the knowledge base of that number, from 1."""
    return folder / f"beside-{number}.{part}.jsonl"


def _choosing(settings: Settings, count: int) -> str:
    if not model_class(settings.model).trains:
        return ": confidences are fitted on them"
    first = len(settings.training.choosing(range(count)))
    return f": {'they' if first == count else f'the first {first}'} choose the best epoch"


def _questions(
    kb: KnowledgeBase, settings: Settings, folder: Path, clock: Clock | None
) -> tuple[Questions, Settings]:
    if settings.train:
        return _of_files(settings), settings
    if settings.data and Path(settings.data).is_dir():
        return _of_folder(Path(settings.data), settings.seed), settings
    if settings.data:
        examples, outside = _parted(settings.data)
        return replace(_split(examples, settings.data, settings.seed), outside=outside), settings
    examples = generated(kb, settings, folder, clock)
    if len(examples) != settings.questions:
        settings = settings.changed({"questions": len(examples)})
    return _split(examples, "generated", settings.seed), settings


def _parted(path: str) -> tuple[list[Example], list[BareQuestion]]:
    """The questions of a file that have programs, and those that say why they have no answer.

    Of a file of corrections the newest of each question counts. Raises ReadError, also for a
    question with neither.
    """
    examples, outside = [], []
    file = Path(path)
    questions = learnable(file) if is_corrections(file) else read_questions(file)
    for number, one in enumerate(questions, 1):
        if isinstance(one, Example):
            examples.append(one)
        elif one.outside is not None:
            outside.append(one)
        else:
            raise ReadError(
                "not an example: there is no 'program', and 'outside' does not say why",
                place=f"question {number}", source=path,
            )  # fmt: skip
    return examples, outside


def _split(examples: list[Example], source: str, seed: int) -> Questions:
    from generation.splits import split

    shares = Sources(*(f"{source}: {share}" for share in ("8 of 10", "1 of 10", "1 of 10")))
    train, valid, test = split(examples, seed)
    return Questions(train, valid, test, shares)


def _of_files(settings: Settings) -> Questions:
    test = list(read_questions(settings.test)) if settings.test else []
    return _scored(
        list(read_examples(settings.train)), list(read_examples(settings.valid)), test,
        Sources(settings.train, settings.valid, settings.test),
    )  # fmt: skip


def _of_folder(folder: Path, seed: int) -> Questions:
    """The parts of a folder; of a validation part that it lacks, a ninth of the training part."""
    from generation.formats import parts_of
    from generation.splits import split

    files = parts_of(folder)
    if files is None or "train" not in files:
        raise ReadError(
            "there is no file of training questions, such as train.json", source=str(folder)
        )
    sources = {part: ", ".join(map(str, own)) for part, own in files.items()}
    train = list(_examples(files["train"]))
    if "valid" in files:
        valid = list(_examples(files["valid"]))
    elif "test" in files:
        train, valid = split(train, seed, (9, 1))
        sources["valid"] = f"{sources['train']}: 1 of 10"
    else:
        return _split(train, sources["train"], seed)
    test = [one for file in files.get("test", ()) for one in _asked(file)]
    return _scored(
        train, valid, test, Sources(sources["train"], sources["valid"], sources.get("test", ""))
    )


def _scored(
    train: list[Example], valid: list[Example], test: list[Asked], given: Sources
) -> Questions:
    """The questions of given parts; the validation part is scored where no other has answers."""
    if any(one.program is not None or one.answer is not None for one in test):
        return Questions(train, valid, test, given)
    told = Sources(given.train, given.valid, given.valid)
    why = f"{given.test} has no answers" if test else "no test questions are set"
    remark = f"{why}: the validation questions are scored, which choose the best epoch, too"
    return Questions(train, valid, valid, told, remark)


def _examples(files: Iterable[Path]) -> Iterable[Example]:
    from generation.formats import open_examples

    for file in files:
        yield from open_examples(file)


def _asked(file: Path) -> Iterable[Asked]:
    from generation.formats import form_of, open_examples

    return read_questions(file) if form_of(file) == "json" else open_examples(file)


def workers(settings: Settings) -> int:
    """How many processes make the questions."""
    from generation.blocks import SIZE

    return min(cores(), 1 + settings.questions // (2 * SIZE))


def generated(
    kb: KnowledgeBase, settings: Settings, folder: Path, clock: Clock | None = None
) -> list[Example]:
    """New questions over the knowledge base, made by all cores; as many as there is time for.

    Those of the profile first, then those of the other one; both shares stay where there are fewer.
    """
    from generation.rules_file import PROFILES

    begin = time.monotonic()
    limit = settings.training.minutes * 60 if clock else 0.0
    share = MAKING * limit - clock.seconds() if clock else 0.0
    others = round(settings.questions * settings.other_profile)
    own = settings.questions - others
    part = own / settings.questions
    examples, used = made(
        kb, settings, folder, own, settings.profile, (limit, part * share), settings.noise
    )
    if others:
        [other] = [name for name in PROFILES if name != settings.profile]
        others = round(others * len(examples) / own)
        seed = (settings.seed + 1) % 2**63
        more, _ = made(
            kb, replace(settings, seed=seed), folder, others, other, (limit, share - used)
        )
        examples += more
    if (seconds := time.monotonic() - begin) >= TOLD:
        print(f"questions made in {seconds:.0f} s", flush=True)
    return examples


def made(
    kb: KnowledgeBase, settings: Settings, folder: Path, count: int, profile: str,
    seconds: tuple[float, float], noise: float = 0.0,
) -> tuple[list[Example], float]:  # fmt: skip
    """Questions of one profile, and the seconds of work that they took.

    ``seconds``: the limit for the whole command, and the share of it for these.
    """
    from generation.blocks import SIZE, Options
    from generation.makers import Block
    from generation.run import Plan, run

    # Parsers learn programs: no queries are needed, and not the deepest questions.
    options = Options(profile=profile, levels=7, sparql=False, noise=noise)
    plan = Plan(settings.kb, count, settings.seed, options)
    written = folder / "questions.jsonl"
    processes = workers(settings)
    making = Making(count, SIZE, processes, *seconds, lambda text: print(text, flush=True))

    def wanted(kept: int, block: Block) -> int:
        return making(kept, block.seconds, block.prepared)

    run(plan, written, workers=processes, kb=kb, wanted=wanted)
    examples = list(read_examples(written))
    written.unlink()
    return examples, making.used
