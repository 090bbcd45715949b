"""Docstrings and pages refer only to names that exist: a name that was changed must be changed there, too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from actors.gateway.input_client import Client

ROOT = Path(__file__).parents[1]
_REFERENCE = re.compile(r":(?:meth|func|class|data|attr|mod|exc):`~?([\w.]+)`")
_CALL = re.compile(r"\bclient\.(\w+)\(")


def _sources() -> Iterator[tuple[Path, str]]:
    for room in ("schemas", "events", "actors", "deploy"):
        for path in (ROOT / room).rglob("*.py"):
            yield path, path.read_text(encoding="utf-8")


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_every_cross_reference_of_a_docstring_names_something_that_exists() -> None:
    names, references = set[str](), list[tuple[str, str]]()
    for path, text in _sources():
        names.update((path.stem, path.parent.name), _names_in(ast.parse(text)))
        where = str(path.relative_to(ROOT))
        references += ((where, found.rpartition(".")[2]) for found in _REFERENCE.findall(text))
    assert references
    assert [(where, name) for where, name in references if name not in names] == []


def test_every_call_on_the_page_of_the_client_is_a_method_of_it() -> None:
    calls = set(_CALL.findall((ROOT / "docs" / "client.md").read_text(encoding="utf-8")))
    assert {"begin", "shorten_waits"} <= calls
    assert [name for name in calls if not hasattr(Client, name)] == []
