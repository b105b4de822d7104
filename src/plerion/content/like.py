"""`LIKE` patterns: `%` is any run of characters, `_` is any one, and a backslash takes their meaning away.

`matches_pattern` is the definition: the pattern is a little automaton with one state before each element,
all states advance together as the bits of one integer, and a `%` is a state that may stay where it is. Time
is one step a character, whatever the pattern: there is nothing to backtrack. `matcher` is the same
predicate made for many texts: without `_` a pattern is a prefix, some pieces in order and a suffix, which
`str.find` does faster.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

Element: TypeAlias = str | Literal[1, 0]  # a character, ANY_ONE or ANY_RUN

ANY_ONE: Literal[1] = 1
ANY_RUN: Literal[0] = 0


def elements(pattern: str) -> list[Element]:
    """The pattern's parts in order; a backslash before `%`, `_` or a backslash makes that character plain."""
    found: list[Element] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and pattern[at + 1 : at + 2] in ("%", "_", "\\"):
            at += 1
            found.append(pattern[at])
        elif letter == "%":
            found.append(ANY_RUN)
        else:
            found.append(ANY_ONE if letter == "_" else letter)
        at += 1
    return found


def matches_pattern(text: str, pattern: str) -> bool:
    """Whether the whole text is an instance of the pattern."""
    return _automaton(elements(pattern))(text)


def matcher(pattern: str) -> Callable[[str], bool]:
    """`matches_pattern` for one pattern and many texts."""
    parts = elements(pattern)
    return _automaton(parts) if ANY_ONE in parts else _pieces(parts)


def work(pattern: str, texts: Sequence[str]) -> float:
    """About how many microseconds `matcher` needs for all the texts."""
    parts = elements(pattern)
    if ANY_ONE in parts:
        return 0.4 * len(texts) + 0.15 * sum(map(len, texts))
    ends = parts[:1] + parts[-1:]
    simple = parts.count(ANY_RUN) == 1 and ends[-1:] == [ANY_RUN]
    contained = parts.count(ANY_RUN) == 2 and ends == [ANY_RUN, ANY_RUN]
    return (0.12 if simple or contained else 0.4) * len(texts)


def _automaton(parts: list[Element]) -> Callable[[str], bool]:
    stays, any_one, steps, at = 0, 0, dict[str, int](), 0
    for part in parts:
        if part == ANY_RUN:
            stays |= 1 << at
            continue
        if isinstance(part, str):
            steps[part] = steps.get(part, 0) | 1 << at
        else:
            any_one |= 1 << at
        at += 1

    def accepts(text: str) -> bool:
        states = 1
        for letter in text:
            states = (states & (steps.get(letter, 0) | any_one)) << 1 | states & stays
            if not states:
                return False
        return bool(states >> at & 1)

    return accepts


def _pieces(parts: list[Element]) -> Callable[[str], bool]:
    pieces = [""]
    for part in parts:
        if isinstance(part, str):
            pieces[-1] += part
        else:
            pieces.append("")
    if len(pieces) == 1:
        return pieces[0].__eq__
    prefix, *middle, suffix = pieces
    if not middle and not suffix:
        return lambda text: text.startswith(prefix)
    if len(middle) == 1 and not prefix and not suffix:
        return lambda text: middle[0] in text
    shortest = len(prefix) + len(suffix)

    def accepts(text: str) -> bool:
        if len(text) < shortest or not text.startswith(prefix) or not text.endswith(suffix):
            return False
        at, end = len(prefix), len(text) - len(suffix)
        for piece in middle:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    return accepts
