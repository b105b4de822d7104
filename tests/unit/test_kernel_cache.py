"""Compiled code is never older than the sources."""

from pathlib import Path

from plerion.kernel import cache_directory


def test_a_change_of_any_source_starts_an_empty_cache(tmp_path: Path) -> None:
    sources, place = tmp_path / "src", tmp_path / "cache"
    (sources / "deep").mkdir(parents=True)
    (sources / "a.py").write_text("x = 1\n")
    called = sources / "deep" / "called.py"
    called.write_text("y = 1\n")
    before = cache_directory(sources, place)
    assert cache_directory(sources, place) == before
    called.write_text("y = 2\n")
    assert cache_directory(sources, place) != before
    called.write_text("y = 1\n")
    assert cache_directory(sources, place) == before


def test_old_caches_go(tmp_path: Path) -> None:
    sources, place = tmp_path / "src", tmp_path / "cache"
    sources.mkdir()
    for version in range(10):
        (sources / "a.py").write_text(f"x = {version}\n")
        newest = cache_directory(sources, place)
    assert newest in place.iterdir()
    assert len(list(place.iterdir())) <= 4
