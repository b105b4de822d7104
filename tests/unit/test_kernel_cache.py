"""Compiled code is never older than the sources."""

from pathlib import Path

from plerion.kernel import cache_directory


def test_a_change_of_what_kernels_depend_on_starts_an_empty_cache(tmp_path: Path) -> None:
    sources, place = tmp_path / "pack", tmp_path / "cache"
    (sources / "deep").mkdir(parents=True)
    (sources / "a.py").write_text("from pack.kernel import kernel\nfrom pack.deep.called import y\n")
    called, behind = sources / "deep" / "called.py", sources / "deep" / "behind.py"
    called.write_text("import pack.deep.behind\ny = 1\n")
    behind.write_text("z = 1\n")
    before = cache_directory(sources, place)
    assert cache_directory(sources, place) == before
    for file in (called, behind):
        kept = file.read_text()
        file.write_text(f"{kept}x = 2\n")
        assert cache_directory(sources, place) != before
        file.write_text(kept)
        assert cache_directory(sources, place) == before


def test_a_change_of_what_no_kernel_depends_on_keeps_the_cache(tmp_path: Path) -> None:
    sources, place = tmp_path / "pack", tmp_path / "cache"
    sources.mkdir()
    (sources / "a.py").write_text("from pack.kernel import kernel\n")
    before = cache_directory(sources, place)
    (sources / "command.py").write_text("from pack.a import x\n")
    assert cache_directory(sources, place) == before


def test_old_caches_go(tmp_path: Path) -> None:
    sources, place = tmp_path / "pack", tmp_path / "cache"
    sources.mkdir()
    for version in range(10):
        (sources / "a.py").write_text(f"from pack.kernel import kernel\nx = {version}\n")
        newest = cache_directory(sources, place)
    assert newest in place.iterdir()
    assert len(list(place.iterdir())) <= 4
