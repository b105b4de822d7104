"""What the architecture tests look at: the modules of the package and the files under version control."""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "plerion"


@cache
def modules() -> dict[str, str]:
    """The text of every module of the package, by its path inside the package ("index/dz.py")."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tracked() -> dict[str, str]:
    """Every text file under version control, and those about to be: by path from the root."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(name for name in listing.stdout.split("\0") if name)
    return {name: text for name in names for text in _text(ROOT / name)}


def _text(path: Path) -> Iterator[str]:
    try:
        yield path.read_text()
    except (UnicodeDecodeError, FileNotFoundError):
        return  # a picture or a compressed table; or deleted and not yet committed
