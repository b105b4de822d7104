"""A world of its own for a lab: network, processes, mounts and /run that nobody else changes, so that *everything*
can be compared before and after. Run as a program in such a world it carries out one scene:

    unshare --mount --net --pid --fork --mount-proc python -m tests.ovs.lab_world SCENE

Nothing of the lab's own search for what it left is used to judge it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import pytest

from plerion.lab import Lab, LabError, labs, status, take_down
from plerion.lab.place import Place
from plerion.topology import from_name, torus

RUN = Path("/run/plerion/demo")
NETWORK = torus(3, 4)
SECONDS = 20.0


class World(NamedTuple):
    """All that a lab could leave behind."""

    interfaces: frozenset[str]
    namespaces: frozenset[str]
    processes: frozenset[str]
    files: frozenset[str]


def world() -> World:
    shown = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    interfaces = (line.split(":")[1].split("@")[0].strip() for line in shown.splitlines())
    spaces = Path("/run/netns")
    files = (str(path) for path in Path("/run").rglob("*") if spaces not in (path, path.parent))
    listed = (path.name for path in spaces.iterdir()) if spaces.is_dir() else ()
    return World(frozenset(interfaces), frozenset(listed), frozenset(processes()), frozenset(files))


def processes() -> Iterator[str]:
    """Those that run, but for this one and what has ended and waits to be noticed."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                name, _, rest = (path / "stat").read_text().rpartition(")")
            except OSError:
                continue
            if rest.split()[0] != "Z":
                yield f"{path.name} {name.partition('(')[2]}"


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = monotonic() + SECONDS
    while not condition():
        assert monotonic() < give_up, "it never happened"


def has_process(name: str) -> bool:
    return any(process.endswith(f" {name}") for process in processes())


def file(name: str) -> Callable[[], bool]:
    return (RUN / name).exists


def interfaces_above(count: int) -> Callable[[], bool]:
    return lambda: len(os.listdir("/proc/sys/net/ipv6/conf")) > count  # noqa: PTH208 - quick, to hit the moment


MOMENTS: dict[str, Callable[[], bool]] = {
    "the directory is there": RUN.is_dir,
    "the database is made": file("conf.db"),
    "the database answers": file("ovsdb-server.ctl"),
    "namespaces are made": file("namespaces.batch"),
    "a namespace is there": Path("/run/netns/plerion.demo.h2").exists,
    "cables are made": interfaces_above(12),
    "cables are raised": file("up.batch"),
    "hosts are set up": file("host2.batch"),
    "the last host is set up": file("host12.batch"),
    "the switches start": file("ovs-vswitchd.log"),
    "the switches answer": file("ovs-vswitchd.ctl"),
}


def up(name: str = "demo") -> Lab:
    return asyncio.run(Lab.up(NETWORK, name))


def down(name: str = "demo") -> None:
    take_down(Place(name))


def a_lab_that_goes_leaves_the_world_as_it_was() -> None:
    before = world()
    lab = up()
    during = world()
    assert len(during.interfaces) > len(before.interfaces) + 48
    assert len(during.namespaces) == 12
    assert {process.split()[1] for process in during.processes - before.processes} >= {
        "ovsdb-server",
        "ovs-vswitchd",
    }
    guest = lab.popen("h1", ["sleep", "1000"])
    wait_for(lambda: has_process("sleep"))
    asyncio.run(lab.down())
    guest.wait(SECONDS)
    assert world() == before, world()
    assert not take_down(Place("demo"))


def killed_at_any_moment_it_can_be_taken_down() -> None:
    before = world()
    for moment, reached in MOMENTS.items():
        child = os.fork()
        if not child:
            up()
            signal.pause()
        wait_for(reached)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert world() != before, moment
        assert [one.name for one in labs()] == ["demo"], moment
        with pytest.raises(LabError, match="take it down first"):
            up()
        down()
        assert world() == before, (moment, world())
    up()
    down()


def cancelled_at_any_moment_it_takes_itself_down() -> None:
    async def cancelled(reached: Callable[[], bool]) -> None:
        task = asyncio.create_task(Lab.up(NETWORK))
        while not reached() and not task.done():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    before = world()
    for moment, reached in MOMENTS.items():
        asyncio.run(cancelled(reached))
        assert world() == before, (moment, world())


def without_room_on_the_disk_it_takes_itself_down() -> None:
    small = Path("/tmp/small")
    small.mkdir(exist_ok=True)
    failed = 0
    for kilobytes in (8, 16, 32, 48, 64, 96, 128, 192):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", small], check=True)
        before = world(), sorted(small.rglob("*"))
        try:
            asyncio.run(asyncio.wait_for(Lab.up(NETWORK, run=small), SECONDS))
            take_down(Place("demo", small))
        except (LabError, OSError):
            failed += 1
        assert (world(), sorted(small.rglob("*"))) == before, kilobytes
        subprocess.run(["umount", small], check=True)
    assert failed >= 3, failed
    small.rmdir()


def what_others_destroyed_is_noticed_and_taken_down() -> None:
    before = world()
    lab = up()
    assert not status(lab.place).faults
    daemons = [int(name.split()[0]) for name in processes() if name.split()[1].startswith("ovs")]
    for pid in daemons:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not has_process("ovs-vswitchd"))
    subprocess.run(["ip", "netns", "delete", lab.host("h3")], check=True)
    faults = status(lab.place).faults
    for fault in ("ovsdb-server does not run", "ovs-vswitchd does not run", "the namespace of h3 is missing"):
        assert fault in faults, faults
    down()
    assert world() == before, world()


def a_directory_that_was_deleted_hides_nothing() -> None:
    before = world()
    up()
    shutil.rmtree(RUN)
    (found,) = labs()
    assert found.faults, found
    down()
    assert world() == before, world()


def what_a_reboot_left_is_taken_down() -> None:
    before = world()
    up()
    for pid in [int(name.split()[0]) for name in processes() if name.split()[1].startswith("ovs")]:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not has_process("ovs-vswitchd"))
    for name in world().interfaces - before.interfaces:
        subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)
    for path in Path("/run/netns").iterdir():
        subprocess.run(["umount", path], check=True)  # the file stays, and is no namespace any more
    assert "ovsdb-server does not run" in labs()[0].faults
    down()
    assert world() == before, world()


def labs_run_side_by_side_and_go_one_by_one() -> None:
    before = world()
    first = up("first")
    alone = world()
    second = up("second")
    both = world()
    assert len(both.interfaces - before.interfaces) == 2 * len(alone.interfaces - before.interfaces)
    assert [one.name for one in labs()] == ["first", "second"]
    asyncio.run(second.down())
    assert world() == alone
    assert not status(first.place).faults
    asyncio.run(first.down())
    assert world() == before, world()


def labs_of_one_name_at_two_homes_are_two() -> None:
    before, other = world(), Path("/tmp/other")
    usual = up()
    alone = world()
    Path("/tmp/link").symlink_to(other)
    second = asyncio.run(Lab.up(NETWORK, run=Path("/tmp/link")))
    assert [one.directory for one in labs(other)] == ["/tmp/other/demo"]
    assert [one.directory for one in labs()] == [str(RUN)]
    assert not status(usual.place).faults
    assert not status(Place("demo", other)).faults
    assert Lab.find("demo", other).host("h1") == second.host("h1") != usual.host("h1")
    take_down(Place("demo", other))
    assert world() == alone, world()
    asyncio.run(usual.down())
    assert world() == before, world()


def of_two_that_build_the_same_lab_one_is_refused() -> None:
    async def both() -> list[Lab | BaseException]:
        return list(await asyncio.gather(Lab.up(NETWORK), Lab.up(NETWORK), return_exceptions=True))

    before = world()
    one, other = sorted(asyncio.run(both()), key=lambda found: isinstance(found, Lab))
    assert isinstance(one, LabError), one
    assert isinstance(other, Lab), other
    assert not status(other.place).faults
    with other.place.locked():
        assert "being built" in status(other.place).faults[0]
        with pytest.raises(LabError, match="another process"):
            down()
    down()
    assert world() == before, world()


def nobody_else_loses_anything() -> None:
    """Interfaces, namespaces, directories and processes that look a little like a lab's own stay."""
    lab = up()
    mark = next(iter(lab.plan.interfaces())).partition("s")[0]
    others = [f"{mark}x1", f"x{mark[1:]}s1p1", f"{mark}s1p"]
    for name in others:
        subprocess.run(["ip", "link", "add", name, "type", "veth"], check=True)
    for name in ("plerion.demo2.h1", "plerion.demo", "demo.h1"):
        subprocess.run(["ip", "netns", "add", name], check=True)
    with subprocess.Popen(
        ["tail", "-f", str(lab.place.log("ovs-vswitchd"))], stdout=subprocess.DEVNULL
    ) as reader:
        down()
        found = world()
        assert set(others) <= found.interfaces
        assert found.namespaces == {"plerion.demo2.h1", "plerion.demo", "demo.h1"}
        assert reader.poll() is None
        reader.kill()


def sixty_four_switches_come_up_quickly() -> None:
    before, began = world(), monotonic()
    lab = asyncio.run(Lab.up(from_name("torus:8x8")))
    took = monotonic() - began
    assert took < 15, took
    assert not status(lab.place).faults
    asyncio.run(lab.down())
    assert world() == before, world()


SCENES = [
    a_lab_that_goes_leaves_the_world_as_it_was,
    killed_at_any_moment_it_can_be_taken_down,
    cancelled_at_any_moment_it_takes_itself_down,
    without_room_on_the_disk_it_takes_itself_down,
    what_others_destroyed_is_noticed_and_taken_down,
    a_directory_that_was_deleted_hides_nothing,
    what_a_reboot_left_is_taken_down,
    labs_run_side_by_side_and_go_one_by_one,
    labs_of_one_name_at_two_homes_are_two,
    of_two_that_build_the_same_lab_one_is_refused,
    nobody_else_loses_anything,
    sixty_four_switches_come_up_quickly,
]


def the_world_is_seen_to_change() -> None:
    """The judge can tell: each kind of thing that a lab could leave behind is noticed."""
    before = world()
    subprocess.run(["ip", "link", "add", "left", "type", "veth"], check=True)
    assert world().interfaces != before.interfaces
    subprocess.run(["ip", "netns", "add", "left"], check=True)
    assert world().namespaces != before.namespaces
    (Path("/run") / "left").touch()
    assert world().files != before.files
    with subprocess.Popen(["sleep", "100"]) as left:
        assert world().processes != before.processes
        left.kill()


def stay(name: str) -> None:
    """A lab that is up until nobody listens any more."""
    up(name)
    print("up", flush=True)
    sys.stdin.read()


def enter() -> None:
    """What `unshare` leaves to do."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


if __name__ == "__main__":
    enter()
    if sys.argv[1] == "stay":
        stay(sys.argv[2])
    else:
        {scene.__name__: scene for scene in [*SCENES, the_world_is_seen_to_change]}[sys.argv[1]]()
