"""Filter text becomes a bounded list of words, or is refused at one place for one reason.

A filter may come from anyone, so this pass is the guard: one regular expression without backtracking walks
the text once and stops at the first thing beyond a limit. The parser behind it never sees more than
MAX_WORDS words and MAX_PARENTHESES parentheses, nested at most MAX_DEPTH deep, which bounds its time and
memory. Parentheses are counted apart because the canonical text adds them, at most one a word: a filter
that fits still fits when it is written out in full.

Attribute names are looked up here, so that words carry what they mean and the grammar needs no schema.
"""

import math
import re
from typing import Final, NamedTuple

from plerion.content.errors import FilterError, printable, quoted, suggestion
from plerion.content.filter import KEYWORDS
from plerion.content.schema import Attribute, Schema

MAX_TEXT: Final = 65_536  # characters
MAX_WORDS: Final = 1_500
MAX_PARENTHESES: Final = 1_500
MAX_DEPTH: Final = 64
MAX_NUMBER: Final = 64  # characters of a number
MAX_STRING: Final = 1_024  # characters of a quoted text, the longest value that a schema can have
_EXCERPT: Final = 64

_WORD: Final = re.compile(
    r"""
      (?P<SPACE>   [ \t\r\n]++ )
    | (?P<BARE>    [A-Za-z_][A-Za-z0-9_.]*+ )
    | (?P<NUMBER>  [+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?  )
    | (?P<STRING>  '(?:[^'\\]++|\\.)*+' | "(?:[^"\\]++|\\.)*+" )
    | (?P<TICKED>  `(?:[^`]++|``)++` )
    | (?P<COMPARE> <>|[<>!]=|[<>=](?!=) )
    | (?P<LPAR>    \( )
    | (?P<RPAR>    \) )
    | (?P<COMMA>   , )
    """,
    re.VERBOSE | re.DOTALL,
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPED: Final = {quote: re.compile(rf"\\([\\{quote}])") for quote in "'\""}

# What people write from habit, and what to write here.
_FOREIGN_SIGNS: Final = {
    "==": "write a single =",
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT, or != for 'differs from'",
    "*": "filters compare and do not calculate; send the result as an attribute of the event",
    "/": "filters compare and do not calculate; send the result as an attribute of the event",
    "+": "filters compare and do not calculate; send the result as an attribute of the event",
    "-": "a minus sign belongs to the number that follows it, without a space",
    "%": "filters compare and do not calculate; in a LIKE pattern, % stands inside the quotes",
    "'": "close the text with the quote that it began with; inside, write \\' for the quote itself",
    '"': 'close the text with the quote that it began with; inside, write \\" for the quote itself',
    "`": "close the name with a backtick; inside, write two for the backtick itself",
    ";": "a filter is one condition; leave the semicolon out",
}
FOREIGN_WORDS: Final = {
    "EXISTS": "a filter selects by value; leave out the test for presence, since a comparison implies it",
    "IS": "a filter selects by value; leave out the test for presence, since a comparison implies it",
    "XOR": "write (a AND NOT b) OR (NOT a AND b)",
    "NULL": "a missing value satisfies no comparison, so there is nothing to compare with",
}


class Word(NamedTuple):
    """One word of a filter: its kind, its place in the text and what it means.

    `value` is a float for NUMBER, a str for STRING, a bool for BOOLEAN and the position in the schema for
    NAME, which alone has an `attribute`.
    """

    type: str
    value: float | str | bool | int
    start: int
    end: int
    attribute: Attribute | None = None


class Fault(Exception):  # noqa: N818 - it never leaves this folder
    """Something is wrong at one place of the text; `parse` turns it into a FilterError."""

    def __init__(self, start: int, what: str, fix: str = "", expected: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.start = start
        self.what = what
        self.fix = fix
        self.expected = expected


def words(text: str, schema: Schema) -> list[Word]:
    """The words of a filter, within every limit; Fault otherwise."""
    if len(text) > MAX_TEXT:
        raise Fault(0, f"the filter has {len(text)} characters", f"the limit is {MAX_TEXT}; split the filter")
    stray = _UNPRINTABLE.search(text)
    if stray:
        what = f"the character U+{ord(stray.group()):04X} does not belong in a filter"
        raise Fault(stray.start(), what, "remove it")
    found: list[Word] = []
    depth = parentheses = at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise _foreign_sign(text, at)
        at = match.end()
        kind = match.lastgroup
        if kind == "SPACE":
            continue
        if kind in ("LPAR", "RPAR"):
            depth += 1 if kind == "LPAR" else -1
            parentheses += 1
            _check_nesting(depth, parentheses, match.start())
        found.append(_word(kind or "", match, schema))
        if len(found) - parentheses > MAX_WORDS:
            fix = f"the limit is {MAX_WORDS}; split the filter into several subscriptions"
            raise Fault(match.start(), "the filter has too many words", fix)
    return found


def _check_nesting(depth: int, parentheses: int, at: int) -> None:
    if depth < 0:
        raise Fault(at, "')' closes nothing", "remove it or open a '(' before it")
    if depth > MAX_DEPTH:
        raise Fault(at, f"nested deeper than {MAX_DEPTH}", "remove parentheses that change nothing")
    if parentheses > MAX_PARENTHESES:
        raise Fault(at, f"more than {MAX_PARENTHESES} parentheses", "remove those that change nothing")


def _word(kind: str, match: re.Match[str], schema: Schema) -> Word:
    written, start, end = match.group(), match.start(), match.end()
    if kind == "BARE":
        keyword = written.upper() if len(written) <= 7 else ""
        if keyword not in KEYWORDS:
            return _name(written, match, schema)
        if keyword in ("TRUE", "FALSE"):
            return Word("BOOLEAN", keyword == "TRUE", start, end)
        return Word(keyword, keyword, start, end)
    if kind == "NUMBER":
        return Word("NUMBER", _number(written, match), start, end)
    if kind == "STRING":
        if len(written) > 2 * MAX_STRING + 2 or len(plain := _unescaped(written)) > MAX_STRING:
            fix = f"the limit is {MAX_STRING} characters, the longest value that a schema can have"
            raise Fault(start, "the quoted text is too long", fix)
        return Word("STRING", plain, start, end)
    if kind == "TICKED":
        return _name(written[1:-1].replace("``", "`"), match, schema)
    if kind == "COMPARE":
        return Word("COMPARE", "!=" if written == "<>" else written, start, end)
    return Word(kind, written, start, end)


def _unescaped(written: str) -> str:
    return _ESCAPED[written[0]].sub(r"\1", written[1:-1])


def _number(written: str, match: re.Match[str]) -> float:
    after = match.string[match.end() : match.end() + 1]
    if after and (after.isalnum() or after in "_."):
        fix = "put a space after the number; a name that starts with a digit goes in backticks"
        raise Fault(match.start(), f"{quoted(written + after)} is not a number", fix)
    if len(written) > MAX_NUMBER:
        raise Fault(match.start(), "the number is too long", f"the limit is {MAX_NUMBER} characters")
    value = float(written)
    if math.isinf(value):
        raise Fault(match.start(), f"{quoted(written)} is beyond the largest double", "use a smaller number")
    return value


def _name(name: str, match: re.Match[str], schema: Schema) -> Word:
    at = schema.positions.get(name)
    if at is not None:
        return Word("NAME", at, match.start(), match.end(), schema.attributes[at])
    if name.upper() in FOREIGN_WORDS:
        raise Fault(match.start(), f"{quoted(name)} is not part of the language", FOREIGN_WORDS[name.upper()])
    if match.string[match.end() : match.end() + 1] == "(":
        fix = "filters have no functions; send the result as an attribute of the event"
        raise Fault(match.start(), f"{quoted(name)} looks like a function", fix)
    raise Fault(match.start(), f"there is no attribute {quoted(name)}", suggestion(name, schema.names))


def _foreign_sign(text: str, at: int) -> Fault:
    for sign in (text[at : at + 2], text[at]):
        if sign in _FOREIGN_SIGNS:
            what = "means nothing here" if sign not in ("'", '"', "`") else "opens a quote that never closes"
            return Fault(at, f"{sign} {what}", _FOREIGN_SIGNS[sign])
    what = f"{quoted(text[at])} (U+{ord(text[at]):04X}) means nothing here"
    return Fault(at, what, "put names with unusual characters in backticks and text in quotes")


def located(text: str, fault: Fault) -> FilterError:
    """The fault as an error with line, column and the line's part around it, a caret underneath."""
    begin = text.rfind("\n", 0, fault.start) + 1
    end = text.find("\n", fault.start)
    stop = len(text) if end < 0 else end
    first = max(begin, min(fault.start - _EXCERPT // 2, stop - _EXCERPT))
    last = min(stop, first + _EXCERPT)
    lead, tail = ("…" if first > begin else ""), ("…" if last < stop else "")
    shown = f"  {lead}{printable(text[first:last])}{tail}\n  {' ' * (len(lead) + fault.start - first)}^"
    line = text.count("\n", 0, fault.start) + 1
    return FilterError(fault.what, fault.fix, line, fault.start - begin + 1, fault.expected, shown)
