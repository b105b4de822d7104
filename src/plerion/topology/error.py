"""What the topology folder raises and warns with."""

SHOWN_CHARACTERS = 80


class TopologyError(ValueError):
    """The input describes no usable network; says in one line where, what, and how to put it right."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        place = f"{where}: " if where else ""
        remedy = f"; {fix}" if fix else ""
        super().__init__(f"{place}{what}{remedy}")

    def within(self, place: str) -> "TopologyError":
        """The same fault, seen from the file (or other whole) that it lies in."""
        where = f"{place}: {self.where}" if self.where else place
        return TopologyError(self.what, where=where, fix=self.fix)


class TopologyWarning(UserWarning):
    """The network was read, and something in it was left out or is likely not what its author meant."""


def shown(value: object) -> str:
    """A value as one short printable line, fit for an error message."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
