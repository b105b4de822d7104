"""What the lab raises."""

from __future__ import annotations


class LabError(ValueError):
    """A lab cannot be as asked for; says in one line what is wrong and how to put it right."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what = what
        self.fix = fix
