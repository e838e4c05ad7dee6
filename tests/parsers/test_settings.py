"""Settings: defaults by model, parts, files, pairs, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import parsers
from kopl_base.errors import KoplError
from kopl_cli.train import find_config

pytest.importorskip("pydantic", reason="pydantic is not installed (extra 'train')")

from kopl_base.errors import SettingsError
from parsers.settings import DEFAULTS, Settings, read_settings

ROOT = Path(__file__).parents[2]


def test_settings_from_pairs() -> None:
    assert read_settings(ROOT / "configs" / "tiny.yaml").pointer.hidden == 64
    found = read_settings(None, ["epochs=3", "dropout=0", "training.compile=true"])
    assert (found.training.epochs, found.pointer.dropout, found.training.compile) == (3, 0.0, True)
    rnn = read_settings(None, ["model=rnn", "hidden=32", "pointer.hidden=8"])
    assert (rnn.rnn.hidden, rnn.pointer.hidden) == (32, 8)


def test_the_papers_settings_are_the_defaults() -> None:
    """GRU: Adam 1e-3, weight decay 1e-5, batch 64, 100 epochs; BART: AdamW 3e-5, new 1e-3, …"""
    rnn, bart = Settings.of("rnn"), Settings.of("seq2seq")
    t = rnn.training
    assert (t.optimizer, t.learning_rate, t.weight_decay, t.batch, t.epochs) == (
        "adam", 1e-3, 1e-5, 64, 100,
    )  # fmt: skip
    assert (rnn.rnn.embedding, rnn.rnn.hidden, rnn.rnn.layers, rnn.rnn.dropout) == (
        300, 1024, 2, 0.2,
    )  # fmt: skip
    t = bart.training
    assert (t.optimizer, t.learning_rate, t.new_learning_rate, t.weight_decay) == (
        "adamw", 3e-5, 1e-3, 1e-5,
    )  # fmt: skip
    assert (t.batch, t.epochs, t.gradient_norm, t.warm_up, t.schedule) == (
        16, 25, 1.0, 0.1, "linear",
    )  # fmt: skip


@pytest.mark.parametrize("model", DEFAULTS)
def test_settings_are_read_back(model: str) -> None:
    settings = Settings.of(model).changed({"epochs": 4, "training": {"batch": 3}})
    assert settings.training.epochs == 4 and settings.training.batch == 3
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_config_is_read(path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra 'train')")
    assert read_settings(path).output.startswith("runs/")


def test_configs_are_called_by_names_that_they_have() -> None:
    """In the pages, the configs, the tests of benchmarks and the code."""
    shipped = {path.stem for path in (ROOT / "configs").glob("*.yaml")}
    files = [ROOT / "README.md"]
    for folder, end in {
        "docs": "md",
        "configs": "yaml",
        "benchmarks": "py",
        "parsers": "py",
    }.items():
        files += sorted((ROOT / folder).rglob(f"*.{end}"))
    called = re.compile(r"\bconfigs/([a-z][\w-]*)\.yaml|--config ([a-z][\w-]*)(?![\w/.-])")
    names = {
        (str(file), match[1] or match[2])
        for file in files
        for match in called.finditer(file.read_text("utf-8"))
    }
    assert ("new-kb" in {name for _, name in names}) and len(names) > 5
    assert [one for one in sorted(names) if one[1] not in shipped] == []


def test_configs_are_found_by_name_and_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = ROOT / "configs" / "tiny.yaml"
    assert find_config("tiny") == find_config("tiny.yaml") == find_config(str(shipped)) == shipped
    (tmp_path / "tiny").mkdir()  # a run, say
    assert find_config("tiny") == shipped
    own = tmp_path / "tiny.yaml"
    own.write_text("epochs: 3")
    assert find_config("tiny") == shipped
    assert find_config("tiny.yaml") == Path("tiny.yaml")  # what is at hand comes first
    for wrong in ("tniy", "configs/none.yaml", "configs/tiny.yaml", "", "."):
        with pytest.raises(KoplError, match=r"no such file.* shipped are .*default.* tiny"):
            find_config(wrong)
    with pytest.raises(KoplError, match="did you mean tiny"):
        find_config("tinny")


def test_configs_of_an_installed_package_lie_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "parsers" / "configs"
    inside.mkdir(parents=True)
    (inside / "default.yaml").write_text("")
    monkeypatch.setattr(parsers, "__file__", str(tmp_path / "parsers" / "__init__.py"))
    assert find_config("default") == inside / "default.yaml"
    with pytest.raises(KoplError, match=r"shipped are default$"):
        find_config("tiny")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["epoch=3"], "no setting 'epoch'; did you mean epochs"),
        (["rnn.hiden=3"], "no setting 'rnn.hiden'; did you mean rnn.hidden"),
        (["training.hidden=3"], "no setting 'training.hidden'"),
        (["other.x=3"], "no setting 'other.x'"),
        (["epochs=many"], "epochs must be of type int, not 'many'"),
        (["compile=2"], "must be of type bool"),
        (["training=3"], "a part with settings of its own"),
        (["epochs"], "key=value"),
        (["epochs=0"], "at least 1"),
        (["learning_rate=nan"], "at least 0"),
        (["warm_up=-1"], r"warm_up must be at least 0, not -1\.0"),
        (["dropout=1"], r"dropout must be from 0 to below 1, not 1\.0"),
        (["dropout=1"], "below 1"),
        (["hidden=65"], "even"),
        (["model=seq2seq", "heads=3"], "multiple of heads"),
        (["model=bart"], "model must be one of pointer, rnn, seq2seq"),
        (["language=sql"], "language must be one of kopl, sparql"),
        (["optimizer=sgd"], "optimizer must be one of adam, adamw"),
        (["data=a", "train=b"], "either data, which is split"),
        (["train=b"], "belong together"),
        (["test=b"], "test is added"),
        (["questions=2"], "questions must be at least 20, not 2"),
        (["seed=-1"], "seed must be at least 0"),
        ([f"seed={2**63}"], f"seed must be at most {2**63 - 1}"),
        (["threads=1025"], "threads must be at most 1024"),
        (["output="], "output must name a folder"),
        (["output= "], "output must name a folder"),
        (["output=."], "output must name a folder"),
        (["output=/"], "output must name a folder"),
        (["output=runs/.."], "output must name a folder"),
        (["schedule=steps"], "the schedule steps and drops, as in drops=5,50, belong together"),
        (["drops=5"], "belong together"),
        (["schedule=steps", "drops=5;50"], "epochs with commas between"),
        (["schedule=steps", "drops=0,5"], "epochs from 1 on"),
        (["precision=half"], "precision must be one of float32, tf32, bfloat16"),
        (["decay=none"], "decay must be one of all, matrices"),
        (["decoding=free"], "decoding must be one of constrained, unconstrained, both"),
        (["decoding=both"], "needs a pointer model that was trained without masks"),
        (["memory=-1"], "memory must be at least 0"),
        (["memory=nan"], "memory must be at least 0"),
        (["device=toaster"], "device must be auto, cpu, cuda or cuda:N, not 'toaster'"),
        (["device=meta"], "device must be auto"),
        (["device=cuda:x"], "device must be auto"),
        (["device=cuda:999999"], "device must be auto"),
        (["device="], "device must be auto"),
    ],
)
def test_wrong_pairs(pairs: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(None, pairs)


def test_a_folder_brings_its_own_knowledge_base(tmp_path: Path) -> None:
    """Whatever a config says; a pair that names another one is followed."""
    config = ROOT / "configs" / "tiny.yaml"
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra 'train')")
    assert read_settings(config, [f"data={tmp_path}"]).kb == "world"
    (tmp_path / "kb.json").write_text("{}")
    assert read_settings(config, [f"data={tmp_path}"]).kb == str(tmp_path / "kb.json")
    assert read_settings(config, [f"data={tmp_path}", "kb=other"]).kb == "other"


def test_how_many_questions_choose_the_epoch() -> None:
    questions = list(range(700))
    assert read_settings(None).training.choosing(questions) == questions[:500]
    assert read_settings(None, ["validation=0"]).training.choosing(questions) == questions


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:3"])
def test_devices_are_settings_of_machines_without_them(device: str) -> None:
    found = read_settings(None, [f"device={device}", f"seed={2**63 - 1}", "questions=20"])
    assert (found.device, found.seed, found.questions) == (device, 2**63 - 1, 20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not YAML"),
        ("- a", "name: value"),
        ("speed: 1", r"config.yaml: there is no setting"),
        ("model: [1]", "model must be one of"),
        ("training: 3", "a part with settings"),
        ("training: {batch: x}", "batch must be of type int"),
        ("batch: true", "batch must be of type int, not True"),
        ("epochs: 1.5", "epochs must be of type int, not 1.5"),
        ("dropout: yes", "dropout must be of type float, not True"),
        ("kb: 5", "kb must be of type str, not 5"),
        ("training: {batch: [1]}", r"batch must be of type int, not \[1\]"),
    ],
)
def test_bad_config_files(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra 'train')")
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_settings(path)
    with pytest.raises(SettingsError, match="cannot be opened"):
        read_settings(tmp_path / "none.yaml")
