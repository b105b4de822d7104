"""Modules and functions stay small enough to read in one sitting, or say here why they do not.

A module has at most 300 lines, a function at most 30 lines of code: docstrings, comments and blank lines
are free. A longer one needs an entry in `EARNED`: "index/dz.py" or "index/dz.py::Dz.parse", the most lines
that it may have and the reason. An entry that is no longer needed has to go.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.repository import modules

MODULE_LINES = 300
FUNCTION_LINES = 30

Function = ast.FunctionDef | ast.AsyncFunctionDef

EARNED: Mapping[str, tuple[int, str]] = {
    "cli/compile.py::compile_tables": (
        44,
        "a line an option, which is how the command line library wants them",
    ),
    "cli/index.py::build": (68, "a line an option"),
    "cli/trace.py::trace": (38, "a line an option"),
    "cli/verify.py::verify": (34, "a line an option"),
}


def sizes(path: str, text: str) -> Iterator[tuple[str, int, int]]:
    """(name, lines, limit) of a module and of each function in it."""
    lines = text.splitlines()
    yield path, len(lines), MODULE_LINES
    for name, function in functions(ast.parse(text)):
        yield f"{path}::{name}", lines_of_code(function, lines), FUNCTION_LINES


def functions(
    node: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function with its dotted name; inner ones count for themselves and for the one around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        inner = f"{prefix}{child.name}." if isinstance(child, Function | ast.ClassDef) else prefix
        yield from functions(child, inner)


def lines_of_code(function: Function, lines: list[str]) -> int:
    """From the `def` to the end, without the docstring, blank lines and lines that are only a comment."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    free = range(first.lineno, (first.end_lineno or 0) + 1) if documented else range(0)
    numbered = range(function.lineno, (function.end_lineno or 0) + 1)
    kept = [lines[n - 1].strip() for n in numbered if n not in free]
    return sum(line != "" and not line.startswith("#") for line in kept)


def objections(texts: Mapping[str, str], earned: Mapping[str, tuple[int, str]]) -> list[str]:
    found, needed = [], set[str]()
    for path, text in texts.items():
        for name, lines, usual in sizes(path, text):
            limit, reason = earned.get(name, (usual, ""))
            if lines > usual:
                needed.add(name)
            if lines > limit:
                found.append(f"{name} has {lines} lines, at most {limit}: split it, or earn it in EARNED")
            if name in earned and not reason.strip():
                found.append(f"{name} is in EARNED without a reason")
    found += [f"{name} is in EARNED but needs no exception any more" for name in earned if name not in needed]
    return found


def test_modules_and_functions_stay_small() -> None:
    found = objections(modules(), EARNED)
    assert not found, "\n".join(found)


LONG = "def long():\n" + "    x = 1\n" * 30
DOCUMENTED = 'def short():\n    """One\n    two."""\n\n' + "    # why\n    x = 1\n" * 29


def test_a_long_function_is_found_wherever_it_hides() -> None:
    assert len(objections({"a.py": LONG}, {})) == 1
    method = "class A:\n" + "".join(f"    {line}\n" for line in LONG.splitlines())
    assert "a.py::A.long has 31" in objections({"a.py": method}, {})[0]
    guarded = "if True:\n" + "".join(f"    {line}\n" for line in LONG.splitlines())
    assert "a.py::long has 31" in objections({"a.py": guarded}, {})[0]


def test_docstrings_comments_and_blank_lines_are_free() -> None:
    assert objections({"a.py": DOCUMENTED}, {}) == []


def test_a_long_module_is_found() -> None:
    assert "a.py has 301" in objections({"a.py": "x = 1\n" * 301}, {})[0]


def test_an_exception_holds_up_to_its_own_limit_and_goes_when_it_is_not_needed() -> None:
    assert objections({"a.py": LONG}, {"a.py::long": (31, "a table")}) == []
    assert "at most 30" in objections({"a.py": LONG}, {"a.py::long": (30, "a table")})[0]
    assert "without a reason" in objections({"a.py": LONG}, {"a.py::long": (31, " ")})[0]
    assert "no exception" in objections({"a.py": DOCUMENTED}, {"a.py::short": (40, "once long")})[0]
    assert "no exception" in objections({}, {"gone.py": (400, "once there")})[0]
