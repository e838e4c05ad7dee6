"""How the packages are built: what imports what, class names that stand twice, small files.

All is read from the source, without importing it. An import counts wherever it stands: at the top,
inside a function, for types only, in a package's stub, or as the text of a module's name in a table
or a call of ``import_module``. What is not yet as it should be is listed here by name, and a list
that names what is gone fails, too: the lists shrink to nothing. ``python -m tests.test_house``
prints the figures.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

from tests.conftest import ROOT

# Each package with those below it. Packages that are not there yet are passed over.
BELOW: dict[str, set[str]] = {
    "kopl_base": set(),
    "kb": {"kopl_base"},
    "kopl": {"kopl_base", "kb"},
    "generation": {"kopl_base", "kb", "kopl"},
    "parsers": {"kopl_base", "kb", "kopl"},
    "cqa": {"kopl_base", "kb", "kopl"},
    "kopl_cli": {"kopl_base", "kb", "kopl", "generation", "parsers", "cqa"},
}

# Modules that import a package which does not stand below theirs.
UPWARD = {
    # What Python runs for `python -m PACKAGE`: the command line under the name of a package.
    ("kopl.__main__", "kopl_cli"),
}

# Modules that import each other, directly or through others.
CIRCLES: list[set[str]] = []

# Where torch may be imported: models, training and decoding. A folder stands for its modules.
TORCH = {
    "cqa/models/",
    "generation/paraphrase/local.py",
    "kopl_base/training/checkpoint.py",
    "kopl_base/training/clock.py",
    "kopl_base/training/distributed.py",
    "kopl_base/training/history.py",
    "kopl_base/training/memory.py",
    "kopl_base/training/optimizer.py",
    "parsers/constrain/generate.py",
    "parsers/models/",
    "parsers/training.py",
}
# Where it is imported, but should not be.
TORCH_ELSEWHERE: set[str] = set()


# Public names that several classes of a package have.
TWICE: set[tuple[str, str]] = set()

# Files of the packages, with train.py and eval.py, that have fewer than LINES lines. A few more or
# fewer are for moves that are under way; the number may only be lowered, to 40 at last.
LINES = 80
SMALL = 50
SLACK = 4

# Processor time of `kopl functions` in seconds.
START = 0.3


def files(root: Path = ROOT) -> dict[str, list[Path]]:
    """The modules of our packages, each with its file and, where there is one, its stub."""
    found: dict[str, list[Path]] = {}
    for package in BELOW:
        for path in sorted((root / package).rglob("*.py*")):
            if path.suffix in (".py", ".pyi"):
                parts = path.relative_to(root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found.setdefault(name, []).append(path)
    return found


def imported(path: Path, module: str, ours: Collection[str]) -> set[str]:
    """What a file of the module imports: modules of ours, and others by their full names.

    Importing a module counts as importing it alone, not also the packages that it lies in.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) + path.stem.count("__init__") - node.level]
                origin = ".".join([*parts, *filter(None, [origin])])
            for alias in node.names:
                name = f"{origin}.{alias.name}"
                found.add(name if name in ours else origin)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found |= set(_texts(node.args))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            # The name of a package alone may be any word; that of a module is not.
            found |= {text for text in _texts(node.elts) if "." in text and text in ours}
        elif isinstance(node, ast.Dict):
            found |= {text for text in _texts(node.values) if "." in text and text in ours}
    return found - {module}


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def imports(root: Path = ROOT) -> dict[str, set[str]]:
    """What each of our modules imports."""
    found = files(root)
    return {
        module: set().union(*(imported(path, module, found) for path in paths))
        for module, paths in found.items()
    }


def circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The largest sets of modules that all reach each other (Tarjan's components)."""
    found: list[set[str]] = []
    numbers: dict[str, int] = {}
    # The smallest number of a module still on the stack that each one reaches.
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in graph:
                continue
            if other not in numbers:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], numbers[other])
        if lowest[module] == numbers[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for module in sorted(graph):
        if module not in numbers:
            visit(module)
    return sorted(found, key=sorted)


def upward(graph: Mapping[str, Collection[str]]) -> set[tuple[str, str]]:
    """The modules that import a package which does not stand below theirs, with that package."""
    found = set()
    for module, others in graph.items():
        own = module.partition(".")[0]
        packages = {other.partition(".")[0] for other in others} & set(BELOW)
        found |= {(module, package) for package in packages - BELOW[own] - {own}}
    return found


def imports_of_torch(root: Path = ROOT) -> set[str]:
    """The files that import torch, in whatever way; all those of models as their folder."""
    found = set()
    graph, where = imports(root), files(root)
    for module, names in graph.items():
        if any("torch" in name.split(".") for name in names):
            place = where[module][0].relative_to(root).as_posix()
            folder, models, _ = place.partition("/models/")
            found.add(folder + models if models else place)
    return found


def sources(root: Path = ROOT) -> list[Path]:
    """The files of code that are shipped: all modules of our packages, and the two scripts."""
    modules = [path for paths in files(root).values() for path in paths if path.suffix == ".py"]
    return [*modules, *(path for name in ("train", "eval") for path in root.glob(f"{name}.py"))]


def names_twice(root: Path = ROOT) -> set[tuple[str, str]]:
    """The packages with the public names that several of their classes have."""
    counts: Counter[tuple[str, str]] = Counter()
    for module, paths in files(root).items():
        for node in ast.walk(ast.parse(paths[0].read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                counts[module.partition(".")[0], node.name] += 1
    return {name for name, count in counts.items() if count > 1}


def small_files(root: Path = ROOT) -> list[Path]:
    """The files of code that have fewer than `LINES` lines."""
    return [path for path in sources(root) if _lines(path) < LINES]


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def figures() -> dict[str, int]:
    """What is printed: each figure by its name."""
    shipped = sources()
    return {
        "files": len(shipped),
        "lines": sum(map(_lines, shipped)),
        f"files under {LINES} lines": len(small_files()),
        "circles of imports": len(circles(imports())),
        "imports upward": len(upward(imports())),
        "places that should not import torch": len(imports_of_torch() - TORCH),
        "class names twice in a package": len(names_twice()),
        "fmt: skip in them": sum(path.read_text("utf-8").count("fmt: skip") for path in shipped),
    }


def processor_time(*arguments: str) -> float:
    """The seconds that Python takes with these arguments: the median of three runs.

    Processor time on one thread, as other work on the machine counts little in it.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    times = []
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        # Waited for here: the object would look for its process in vain.
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(used.ru_utime + used.ru_stime)
    return median(times)


def _compare(found: Collection[object], listed: Collection[object], name: str) -> None:
    """Fail when something new is found, and when something listed is gone."""
    new = [one for one in found if one not in listed]
    gone = [one for one in listed if one not in found]
    assert not new, f"not known yet: {new}"
    assert not gone, f"gone; take it out of {name}: {gone}"


def test_imports_point_down() -> None:
    _compare(upward(imports()), UPWARD, "UPWARD")


def test_no_modules_import_each_other() -> None:
    _compare(circles(imports()), CIRCLES, "CIRCLES")


def test_torch_is_imported_in_models_training_and_decoding() -> None:
    assert not TORCH & TORCH_ELSEWHERE
    _compare(imports_of_torch(), TORCH | TORCH_ELSEWHERE, "TORCH or TORCH_ELSEWHERE")


def test_classes_have_names_of_their_own() -> None:
    _compare(names_twice(), TWICE, "TWICE")


def test_files_are_not_cut_small() -> None:
    small = len(small_files())
    assert small <= SMALL + SLACK, f"{small} files have fewer than {LINES} lines"
    assert small >= SMALL - SLACK, f"only {small} files are small: lower SMALL"


def test_the_command_line_starts_at_once() -> None:
    taken = processor_time("-m", "kopl", "functions")
    # Where importing numpy takes longer than its usual 0.06 s, the machine is slow.
    allowed = START if taken < START else max(START, 5 * processor_time("-c", "import numpy"))
    assert taken < allowed


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    texts = {
        "kb/__init__.py": "",
        "kb/__init__.pyi": "from kb.stubbed import A as A",
        "kb/stubbed.py": "import kb",
        "kb/lazy.py": "def f():\n    from . import typed",
        "kb/typed.py": "if TYPE_CHECKING:\n    from kb.tables import B",
        "kb/tables.py": "COMMANDS = {'lazy': ('kb.lazy', 'kb'), 'text': 'kopl.lower.text'}",
        "kb/words.py": "kb.lazy\n'kb.lazy'\nNAMES = ['kb', 'kb.nowhere']",
        "kopl/lower/__init__.py": "from ..upper import C\nfrom .text import C",
        "kopl/lower/text.py": "from importlib import import_module\nimport_module('torch.cuda')",
        "kopl/upper.py": "import kb.words, safetensors.torch",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = imports(tmp_path)
    assert graph == {
        "kb": {"kb.stubbed"},
        "kb.stubbed": {"kb"},
        "kb.lazy": {"kb.typed"},
        "kb.typed": {"kb.tables"},
        "kb.tables": {"kb.lazy", "kopl.lower.text"},
        "kb.words": set(),
        "kopl.lower": {"kopl.upper", "kopl.lower.text"},
        "kopl.lower.text": {"importlib", "torch.cuda"},
        "kopl.upper": {"kb.words", "safetensors.torch"},
    }
    assert circles(graph) == [{"kb", "kb.stubbed"}, {"kb.lazy", "kb.tables", "kb.typed"}]
    assert upward(graph) == {("kb.tables", "kopl")}
    assert imports_of_torch(tmp_path) == {"kopl/lower/text.py", "kopl/upper.py"}


def test_names_and_lines_are_counted(tmp_path: Path) -> None:
    texts = {
        "kb/one.py": "class A:\n    class B: ...\nclass _C: ...",
        "kb/two.py": "def f():\n    class B: ...\nclass _C: ...\n" + "\n" * LINES,
        "kb/two.pyi": "class A: ...",
        "kopl/one.py": "class A: ...\n" * 2 + "#\n" * (LINES - 3),
        "kopl/two.py": "#\n" * LINES,
        "train.py": "",
        "other.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert names_twice(tmp_path) == {("kb", "B"), ("kopl", "A")}
    assert len(sources(tmp_path)) == 5
    names = [path.relative_to(tmp_path).as_posix() for path in small_files(tmp_path)]
    assert names == ["kb/one.py", "kopl/one.py", "train.py"]


if __name__ == "__main__":
    for name, figure in figures().items():
        print(f"{figure:>7,}  {name}")
