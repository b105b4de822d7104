"""Which attributes an index spends its bits on. Here by list; the pipeline learns the list from the workload."""

from collections.abc import Sequence

from plerion.content.schema import Schema


def by_names(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """Positions of the named attributes, in the given order, each once; no names mean all attributes."""
    chosen = tuple(dict.fromkeys(schema.position(name) for name in names))
    return chosen or tuple(range(len(schema.attributes)))
