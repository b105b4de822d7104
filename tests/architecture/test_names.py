"""One word a concept: names that say nothing are refused, and foreign words stay where they belong.

`manager` and its like are refused anywhere in the name of a module, class or function; `data` and its like
as the whole name or its last word, because a data plane and a common prefix are things with a meaning.
`DataFrame` belongs to the pipeline, and OpenFlow's own words to its folder.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tests.architecture.repository import modules

EMPTY = {"manager", "helper", "util", "handler", "misc", "v2"}
VAGUE = {"info", "data", "base", "common", "new"}
HOMES: Mapping[str, str] = {
    "dataframe": "pipeline/",
    "dpid": "southbound/openflow/",
    "xid": "southbound/openflow/",
    "oxm": "southbound/openflow/",
}


def words(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, in lower case and in the singular."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return [part.lower().removesuffix("s") for part in parts]


def says_nothing(name: str) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return False
    parts = words(name)
    return bool(parts) and (not EMPTY.isdisjoint(parts) or parts[-1] in VAGUE)


def given_names(path: str, text: str) -> Iterator[str]:
    """The names of the folders, the module, and the classes and functions in it."""
    yield from PurePosixPath(path).with_suffix("").parts
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def foreign_words(path: str, text: str) -> Iterator[str]:
    """The names in the code, not in its prose, that belong to another folder."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for word in {token.string.lower(), *words(token.string)} & HOMES.keys():
                if not path.startswith(HOMES[word]):
                    yield f"{path}:{token.start[0]}: {token.string} belongs under {HOMES[word]}"


def objections(texts: Mapping[str, str]) -> list[str]:
    found = []
    for path, text in texts.items():
        found += [f"{path}: {name} says nothing" for name in given_names(path, text) if says_nothing(name)]
        found += foreign_words(path, text)
    return found


def test_names_say_what_things_are() -> None:
    found = objections(modules())
    assert not found, "\n".join(found)


def test_empty_names_are_found() -> None:
    for bad in (
        "TreeManager",
        "path_helpers",
        "util",
        "utils",
        "on_event_handler",
        "HostInfo",
        "load_data",
        "new",
    ):
        assert objections({"a.py": f"def {bad}(): ..."}), bad
    assert objections({"index/common.py": ""})
    assert objections({"flow/diff_v2.py": ""})
    assert objections({"a.py": "class EventBase: ..."})


def test_names_with_a_meaning_are_left_alone() -> None:
    for good in (
        "DataPlane",
        "common_prefix",
        "base_station",
        "new_tree",
        "__new__",
        "utility",
        "renew",
        "database",
    ):
        assert objections({"a.py": f"def {good}(): ..."}) == [], good


def test_foreign_words_are_found_outside_their_folder() -> None:
    assert objections({"flow/entry.py": "dpid = 1"})
    assert objections({"flow/entry.py": "def f(switch_xid: int): ..."})
    assert objections({"cli/demo.py": "from pandas import DataFrame"})
    assert objections({"southbound/openflow/codec.py": "dpid = 1"}) == []
    assert objections({"pipeline/steps.py": "from pyspark.sql import DataFrame"}) == []
    assert objections({"flow/entry.py": '"""The dpid is not our concern."""'}) == []
