"""Nothing under version control is unfinished, silently skipped, or tied to one machine."""

import ast
import re
from collections.abc import Iterator, Mapping

from tests.architecture.repository import tracked

HERE = "tests/architecture/test_loose_ends.py"

ANYWHERE = re.compile("")
PYTHON = re.compile(r"\.py$")

# What it is -> where it must not be, as (pattern of paths, pattern of lines).
LOOSE: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "unfinished": (ANYWHERE, re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")),
    "not implemented": (PYTHON, re.compile(r"\bNotImplementedError\b")),
    "ignored without a reason beside it": (
        PYTHON,
        re.compile(r"#\s*(type:\s*ignore(\[[^]]*\])?|noqa(:[\sA-Z\d,]+)?|pragma: no cover)\s*$"),
    ),
    "somebody's directory": (ANYWHERE, re.compile(r"(?<![\w./-])/(home/\w|Users/\w|root\b|work/)")),
    "a package registry": (
        ANYWHERE,
        re.compile(r"https?://\S+/simple\b|pypi\.\w+/|pythonhosted|(index-url|find-links)[ =]\S*//"),
    ),
}


def loose_ends(path: str, text: str) -> Iterator[str]:
    for what, (paths, lines) in LOOSE.items():
        if paths.search(path):
            for number, line in enumerate(text.splitlines(), 1):
                if lines.search(line):
                    yield f"{path}:{number}: {what}: {line.strip()[:100]}"


def skips_without_a_reason(path: str, text: str) -> Iterator[str]:
    """A skipped test is a promise put off; it says why."""
    nodes = list(ast.walk(ast.parse(text)))
    reasoned = {id(node.func) for node in nodes if isinstance(node, ast.Call) and has_reason(node)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node) in SKIPS and id(node) not in reasoned:
            yield f"{path}:{node.lineno}: {node.attr} without a reason"


SKIPS = {"pytest.skip", "pytest.xfail", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}


def has_reason(call: ast.Call) -> bool:
    takes_it_first = not ast.unparse(call.func).endswith("if")
    return any(keyword.arg == "reason" for keyword in call.keywords) or (takes_it_first and bool(call.args))


def objections(texts: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for path, text in texts.items():
        if path != HERE:
            found += loose_ends(path, text)
            found += skips_without_a_reason(path, text) if path.endswith(".py") else []
    return found


def test_nothing_is_left_loose() -> None:
    found = objections(tracked())
    assert not found, "\n".join(found)


def test_every_kind_of_loose_end_is_found() -> None:
    for bad in (
        "# TODO later",
        "raise NotImplementedError",
        "x = 1  # type: ignore",
        "x = 1  # type: ignore[attr-defined]",
        "import x  # noqa: F401",
        "open('/home/ann/x')",
        "open('/root/x')",
        "pip install --index-url https://mirror.example/simple x",
        "@pytest.mark.skip\ndef test_a(): ...",
        "@pytest.mark.skipif(True)\ndef test_a(): ...",
        "@pytest.mark.xfail()\ndef test_a(): ...",
        "def test_a():\n    pytest.skip()",
    ):
        assert objections({"tests/test_a.py" if "pip " not in bad else "a.md": bad}), bad


def test_a_reason_is_enough() -> None:
    for good in (
        "x = f()  # type: ignore[no-untyped-call]  # ships no types",
        "import x  # noqa: F401  # registers its types",
        "@pytest.mark.skipif(True, reason='needs two cores')\ndef test_a(): ...",
        "def test_a():\n    pytest.skip('needs two cores')",
        "url = '/simple/home/x'",
    ):
        assert objections({"tests/test_a.py": good}) == [], good
