"""Every refusal of this folder is one of four errors, with fields and a first line that stands alone.

Each error says what is wrong and what to do, as fields and as text. The text quotes what a stranger sent,
so quotes are bounded in length and free of characters that a terminal would obey.
"""

import difflib
from collections.abc import Collection

QUOTED = 60  # characters of a stranger's value that an error repeats
_SUGGESTED_FROM = 2048  # names; more are not looked through
_COMPARED = 64  # names of about the same length that are compared letter by letter, a millisecond or two


def quoted(value: object) -> str:
    """The value as text that is safe to print: bounded, without control characters or surrogates."""
    if isinstance(value, str):
        return "'" + printable(value[:QUOTED]) + ("…'" if len(value) > QUOTED else "'")
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int) and value.bit_length() < 200:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def printable(text: str) -> str:
    """The text with every character that does not print replaced by '·', so columns still line up."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def suggestion(name: str, known: Collection[str]) -> str:
    """'did you mean …?' when a known name is close, otherwise the first few that there are."""
    if len(known) <= _SUGGESTED_FROM:
        alike = [other for other in known if abs(len(other) - len(name)) <= 3 and len(other) <= QUOTED]
        close = difflib.get_close_matches(name[:QUOTED], alike[:_COMPARED], n=1)
        folded = [other for other in known if other.lower() == name.lower()]
        for other in folded + close:
            return f"did you mean {quoted(other)}?"
    some = ", ".join(quoted(other) for other, _ in zip(known, range(6), strict=False))
    return f"there are {some}{', …' if len(known) > 6 else ''}" if known else "there are none"


class ContentError(ValueError):
    """Something given from outside is wrong: `what` it is, and how to `fix` it."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    @property
    def place(self) -> str:
        """Where it is, in the words of the input; empty when there is only one place it can be."""
        return ""

    @property
    def summary(self) -> str:
        """One line: place, what, fix."""
        line = f"{self.place}: {self.what}" if self.place else self.what
        return f"{line}; {self.fix}" if self.fix else line

    def __str__(self) -> str:
        return self.summary


class SchemaError(ContentError):
    """A schema is wrong at `path` in its document; one that was read has `file`, `line` and `column`."""

    def __init__(self, what: str, fix: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(what, fix)
        self.path = path
        self.file: str | None = None
        self.line: int | None = None
        self.column: int | None = None

    @property
    def place(self) -> str:
        if self.file is not None:
            spots = [self.file, self.line, self.column]
            return ":".join(str(spot) for spot in spots if spot is not None)
        return ".".join(printable(str(step)) for step in self.path)


class EventError(ContentError):
    """An event has a value that its attribute cannot take; `bound` says which it can."""

    def __init__(
        self, what: str, fix: str = "", attribute: str = "", value: object = None, bound: str = ""
    ) -> None:
        super().__init__(what, fix)
        self.attribute = attribute
        self.value = value
        self.bound = bound


class FilterError(ContentError):
    """A filter is refused at `line` and `column` (from 1); `expected` lists what could stand there."""

    def __init__(
        self,
        what: str,
        fix: str = "",
        line: int = 1,
        column: int = 1,
        expected: tuple[str, ...] = (),
        excerpt: str = "",
    ) -> None:
        super().__init__(what, fix)
        self.line = line
        self.column = column
        self.expected = expected
        self.excerpt = excerpt

    @property
    def place(self) -> str:
        return f"line {self.line}, column {self.column}"

    def __str__(self) -> str:
        return f"{self.summary}\n{self.excerpt}" if self.excerpt else self.summary


class InputError(ContentError):
    """A file of events or interests is wrong in `row` (from 0) and `column`.

    `line` (from 1) is where the row begins in a text file. Each is None when the error has no such place.
    """

    def __init__(
        self,
        what: str,
        fix: str = "",
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(what, fix)
        self.file = file
        self.row = row
        self.column = column
        self.line = line

    @property
    def place(self) -> str:
        file = self.file if self.line is None else f"{self.file}:{self.line}"
        row = None if self.row is None else f"row {self.row}"
        column = None if self.column is None else f"column {printable(self.column)}"
        return ": ".join(filter(None, [file, ", ".join(filter(None, [row, column]))]))
