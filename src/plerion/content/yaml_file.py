"""A YAML file as plain data that remembers where each part stood.

The file is only composed into nodes, never constructed into objects: no tag can name a class, and an alias
is the same node again, so a 'billion laughs' file costs what its bytes cost. Merge keys mean nothing here.
A schema has few parts and little depth; composing stops where a file has more, because the parser makes only
some ten thousand parts a second and deep ones slower than that.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from plerion.content.errors import SchemaError, quoted

MAX_BYTES: Final = 4 << 20
MAX_PARTS = 100_000  # keys, values and lists: room for 65,536 values of one attribute and for 1,023 others
MAX_DEPTH: Final = 64
_PLAIN = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp"))


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of one file, with `located` to say where in it an error is."""

    name: str
    content: object
    root: Node | None

    def located(self, error: SchemaError) -> SchemaError:
        """The error with file, line and column of the deepest part of its path that the file has."""
        node = self.root
        for step in error.path:
            below = _child(node, step)
            if below is None:
                break
            node = below
        return _at(self.name, node, error.what, error.fix, error.path)


class _Bounded(Composer):
    """Composes a file until it is beyond what a schema can be."""

    parts = level = 0

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False  # YAML allows them, and a warning for each would drown the refusal

    def compose_node(self, parent: Node | None, index: object) -> Node:
        self.parts += 1
        self.level += 1
        if self.parts > MAX_PARTS:
            raise SchemaError(f"more than {MAX_PARTS:,} parts", "a schema lists attributes, not events")
        if self.level > MAX_DEPTH:
            raise SchemaError("lists are nested too deeply", "a schema needs four levels")
        node: Node = super().compose_node(parent, index)
        self.level -= 1
        return node


def load(path: Path) -> YamlFile:
    """The file's data; SchemaError when it cannot be read, is no YAML or is larger than a schema can be."""
    name = str(path)
    text = _text(path)
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Bounded
    try:
        root = yaml.compose(text)
        content = _plain(root, yaml, name, {}) if root is not None else None
    except MarkedYAMLError as error:
        raise _syntax_error(name, error) from None
    except SchemaError as error:
        raise error if error.file else _at(name, None, error.what, error.fix) from None
    except (YAMLError, ValueError) as error:
        raise _at(name, None, f"not YAML: {str(error).splitlines()[0][:200]}", "correct the file") from None
    return YamlFile(name, content, root)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _at(str(path), None, f"cannot be read ({error.strerror})", "check the path") from None
    if len(data) > MAX_BYTES:
        raise _at(
            str(path), None, f"larger than {MAX_BYTES >> 20} MiB", "a schema lists attributes, not events"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _at(str(path), None, f"byte {error.start} is not UTF-8", "save the file as UTF-8") from None


def _plain(node: Node, yaml: Any, name: str, done: dict[int, object]) -> object:
    """The node as dicts, lists and scalars; a node that is reached twice is built once."""
    if id(node) in done:
        return done[id(node)]
    if isinstance(node, ScalarNode) and node.tag in _PLAIN:
        try:
            return node.value if node.tag == _PLAIN[-1] else yaml.constructor.construct_object(node)
        except ValueError:
            raise _at(name, node, f"{quoted(node.value)} is not a number", "correct it or quote it") from None
    if isinstance(node, SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        items: list[object] = []
        done[id(node)] = items
        items.extend(_plain(item, yaml, name, done) for item in node.value)
        return items
    if not isinstance(node, MappingNode) or node.tag != "tag:yaml.org,2002:map":
        raise _at(name, node, f"the tag {quoted(str(node.tag))} means nothing here", "remove it")
    keys: dict[str, object] = {}
    done[id(node)] = keys
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or key.value in keys:
            raise _at(name, key, "a key is there twice or is no text", "write each key once")
        keys[key.value] = _plain(value, yaml, name, done)
    return keys


def _child(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: Node = node.value[step]
        return item
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == step:
                found: Node = value
                return found
    return None


def _syntax_error(name: str, error: MarkedYAMLError) -> SchemaError:
    mark = error.problem_mark or error.context_mark
    found = SchemaError(f"not YAML: {error.problem or error.context}", "check indentation, colons and quotes")
    found.file = name
    if mark is not None:
        found.line, found.column = mark.line + 1, mark.column + 1
    return found


def _at(name: str, node: Node | None, what: str, fix: str, path: tuple[str | int, ...] = ()) -> SchemaError:
    error = SchemaError(what, fix, path)
    error.file = name
    if node is not None:
        error.line, error.column = node.start_mark.line + 1, node.start_mark.column + 1
    return error
