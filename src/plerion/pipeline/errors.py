"""The one refusal of this folder: Spark, or what it needs, is not there as asked, or could not do its work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from plerion.content.errors import ContentError

_LONGEST = 200


class PipelineError(ContentError):
    """Spark cannot run: `what` stands in the way, and how to `fix` it; `log` is the end of what Spark wrote."""

    def __init__(self, what: str, fix: str = "", log: str = "") -> None:
        super().__init__(what, fix)
        self.log = log


@contextmanager
def plainly(work: str) -> Iterator[None]:
    """Turns what Spark raises within the block into a PipelineError of one line; all else passes."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - of PySpark, which may be missing
    from pyspark.errors import PySparkException  # noqa: PLC0415 - of PySpark, which may be missing

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"{work}: {said(error)}", log=str(error)) from None


def said(error: Exception) -> str:
    """The line of an exception that says what happened, from under the tracebacks of both languages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [
        line for line in lines if not line.startswith(("at ", "File ", "An error occurred while calling"))
    ]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*:", line)]
    line = (raised or lines or [type(error).__name__])[-1 if raised else 0]
    line = re.sub(r"^:?\s*([a-z]\w*\.)+(?=[A-Z])|\s*SQLSTATE:.*$", "", line)
    return line[:_LONGEST]
