"""Packets cross a lab as the model says, and its switches and links can be taken away and given back."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
import trustme

from plerion.cli.options import deployment
from plerion.content.read import read_events
from plerion.flow.admission import EVENT_PORT
from plerion.flow.render import LastHop, ofctl_lines
from plerion.flow.walk import ModelNetwork
from plerion.index.address import AddressPlan
from plerion.index.encode import encode
from plerion.lab import Lab, LabError, Tls, labs, status
from plerion.lab.place import Place
from plerion.lab.run import PRIORITY
from plerion.topology import HostId, Link, SwitchId, Topology, from_name, ipv6, line, load, ring
from tests.architecture.repository import ROOT
from tests.scenarios.test_cli import EXAMPLES, plerion

pytestmark = pytest.mark.ovs

TOPOLOGIES = ROOT.parent / "shared" / "data" / "topologies"
SECONDS = 10.0
PLAN = AddressPlan()
OPEN: list[socket.socket] = []


@contextmanager
def a_lab(topology: Topology, **options: Any) -> Iterator[Lab]:
    """A lab of this test's own, without a controller unless told."""
    chosen = {"controller": None, **options}
    lab = asyncio.run(Lab.up(topology, f"t{uuid4().hex[:12]}", **chosen))
    try:
        yield lab
    finally:
        asyncio.run(lab.down())
        while OPEN:
            OPEN.pop().close()


def opened(lab: Lab, host: str, make: Callable[[], socket.socket]) -> socket.socket:
    """A socket in a host, closed when the lab is taken down."""
    OPEN.append(lab.inside(host, make))
    return OPEN[-1]


def receiver(lab: Lab, host: str, last_hop: LastHop = "raw") -> socket.socket:
    """What takes events in a host: everything that is for the port of events, or what a plain socket gets."""

    def taker() -> socket.socket:
        if last_hop == "raw":
            taken = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
        else:
            taken = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            taken.bind(("::", EVENT_PORT))
        taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        taken.settimeout(SECONDS)
        return taken

    return opened(lab, host, taker)


def sender(lab: Lab, host: str) -> socket.socket:
    return opened(lab, host, lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = monotonic() + SECONDS
    while not condition():
        assert monotonic() < give_up, "it never happened"


def install(lab: Lab, lines: list[str]) -> None:
    """The lines that `plerion compile --format ofctl` prints, on the switches that their titles name."""
    switch = ""
    for title, group in groupby(lines, key=lambda line: line.startswith("#")):
        if title:
            switch = list(group)[-1].removeprefix("# ")
        else:
            lab.ofctl(switch, "add-flows", "-", text="\n".join(group))


def path_lines(topology: Topology) -> list[str]:
    """Along a line of switches from the first host to the last."""
    found = []
    for switch in topology.switches:
        (after,) = [n.port for n in topology.neighbours(switch) if n.peer == _next(topology, switch)]
        found += [f"# {switch}", f"udp6,ipv6_dst=ff0e::/16,actions=output:{after}"]
    return found


def _next(topology: Topology, switch: str) -> str:
    at = topology.switches.index(SwitchId(switch)) + 1
    return topology.switches[at] if at < len(topology.switches) else topology.hosts[-1]


class Line:
    """A line of switches whose first host sends to its last."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source, self.target = sender(lab, "h1"), receiver(lab, lab.topology.hosts[-1])
        self.sent = 0

    def crossed(self) -> bool:
        """Whether an event crosses now; it is waited for only if it does."""
        self.sent += 1
        text = f"{self.sent}".encode()
        self.source.sendto(text, ("ff0e::1", EVENT_PORT))
        self.target.settimeout(0.2)
        try:
            while self.target.recv(2048)[8:] != text:
                pass
        except TimeoutError:
            return False
        return True


NETWORKS = {
    "fat-tree:4x2": from_name("fat-tree:4x2"),
    "ring:5": from_name("ring:5"),
    "Abilene": load(TOPOLOGIES / "zoo_Abilene.graphml"),
}


@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
@pytest.mark.parametrize("network", NETWORKS)
def test_events_reach_exactly_the_hosts_that_the_model_says(
    tmp_path: Path, network: str, last_hop: LastHop
) -> None:
    index_file = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--bits", 23, "--out", index_file)
    source = network if ":" in network else str(TOPOLOGIES / f"zoo_{network}.graphml")
    subscriptions = tmp_path / "subscriptions.csv"
    text = (EXAMPLES / "subscriptions.csv").read_text()
    subscriptions.write_text(re.sub(r"\bh[6-9]\b", "h3", text))  # a ring of five has no more hosts
    found = deployment(source, index_file, subscriptions, None, 8, 64, None, None, None)
    events = read_events(EXAMPLES / "events.csv", found.state.settings.index.schema)
    codes = encode(found.state.settings.index, events.points[:200])
    model = ModelNetwork(found.tables)
    topology, wanted = NETWORKS[network], []
    with a_lab(topology) as lab:
        install(lab, list(ofctl_lines(found.tables, PLAN, last_hop)))
        taken = {host: receiver(lab, host, last_hop) for host in topology.hosts}
        ways = {host: sender(lab, host) for host in topology.hosts}
        for row in range(len(codes)):
            publisher = topology.hosts[row % len(topology.hosts)]
            code = codes.dz.dz(row)
            ways[publisher].sendto(f"{row}".encode(), (str(PLAN.address(code)), EVENT_PORT))
            wanted += [(host, row) for host in model.walk(code, publisher).delivered]
        received = []
        for host, _ in wanted:
            received.append((host, int(taken[host].recv(2048)[8 if last_hop == "raw" else 0 :])))
        assert sorted(received) == sorted(wanted)
        assert len({host for host, _ in wanted}) > 1
        for spare in taken.values():
            spare.setblocking(False)
            with pytest.raises(BlockingIOError):  # nothing more than the model says
                spare.recv(2048)


def test_a_burst_waits_in_the_switches_instead_of_being_lost() -> None:
    topology, events = line(3), 2_000
    with a_lab(topology) as lab:
        install(lab, path_lines(topology))
        taken, source = receiver(lab, "h3"), sender(lab, "h1")
        for number in range(events):
            source.sendto(b"%d" % number, ("ff0e::1", EVENT_PORT))
        assert [int(taken.recv(2048)[8:]) for _ in range(events)] == list(range(events))


def test_hosts_send_with_their_own_addresses_and_say_nothing_by_themselves() -> None:
    topology = line(2)
    with a_lab(topology) as lab:
        lab.ofctl("s1", "add-flows", "-", text="priority=2,udp6,actions=drop\npriority=1,actions=drop")
        for address in ("ff0e:1234::1", "ff18::706c:6572"):
            source = sender(lab, "h1")
            source.connect((address, EVENT_PORT))
            assert source.getsockname()[0] == ipv6(topology, HostId("h1"))
            source.send(b"x")

        def packets(priority: int) -> int:
            shown = lab.ofctl("s1", "dump-flows")
            (line,) = [line for line in shown.splitlines() if f"priority={priority}" in line]
            return int(re.search(r"n_packets=(\d+)", line)[1])  # type: ignore[index]  # it is there

        wait_for(lambda: packets(2) == 2)


@pytest.mark.parametrize("links", ["veth", "patch"])
def test_a_link_that_is_cut_carries_nothing_until_it_is_healed(links: str) -> None:
    topology = line(3)
    with a_lab(topology, links=links) as lab:
        install(lab, path_lines(topology))
        path = Line(lab)
        assert path.crossed()
        for port, ends in (("s1:1", ("s1:1", "s2:1")), ("s3:1", ("s2:2", "s3:1")), ("h3:1", ("s3:2",))):
            lab.cut(port)
            assert not path.crossed()
            wait_for(lambda ends=ends: all(  # type: ignore[misc]  # mypy cannot infer defaults of lambdas
                any(end in fault for fault in status(lab.place).faults) for end in ends
            ))  # fmt: skip
            lab.heal(port)
            lab.heal(port)
            wait_for(path.crossed)
        assert not status(lab.place).faults


@pytest.mark.parametrize("links", ["veth", "patch"])
def test_a_switch_that_was_stopped_comes_back_empty_with_the_same_ports(links: str) -> None:
    topology = line(3)
    with a_lab(topology, links=links) as lab:
        install(lab, path_lines(topology))
        path = Line(lab)
        assert path.crossed()
        lab.stop_switch("s2")
        lab.stop_switch("s2")
        assert not path.crossed()
        assert "s2 is stopped" in status(lab.place).faults
        lab.start_switch("s2")
        wait_for(lambda: not status(lab.place).faults)
        assert "actions" not in lab.ofctl("s2", "dump-flows")
        install(lab, path_lines(topology))
        wait_for(path.crossed)
        lab.restart_daemon()
        assert "actions" not in lab.ofctl("s1", "dump-flows")
        assert not path.crossed()
        install(lab, path_lines(topology))
        wait_for(path.crossed)
        assert not status(lab.place).faults


def test_all_threads_of_the_switches_come_before_what_else_the_machine_does() -> None:
    def priorities(lab: Lab) -> set[int]:
        process = int((lab.place.path / "ovs-vswitchd.pid").read_text())
        threads = [int(thread.name) for thread in Path(f"/proc/{process}/task").iterdir()]
        assert len(threads) > 4, "one that looks through the cache is among them"
        return {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}

    with a_lab(line(2)) as lab:
        assert priorities(lab) == {PRIORITY}
        lab.restart_daemon()
        assert priorities(lab) == {PRIORITY}


def test_a_table_that_is_limited_refuses_what_is_over() -> None:
    with a_lab(line(2), table_limit=2) as lab:
        entry = "table={},udp6,ipv6_dst=ff0e:{}::/32,actions=output:1"
        lab.ofctl("s1", "add-flows", "-", text="\n".join(entry.format(1, n) for n in (1, 2)))
        with pytest.raises(LabError, match="TABLE_FULL"):
            lab.ofctl("s1", "add-flow", entry.format(1, 3))
        lab.ofctl("s1", "add-flows", "-", text="\n".join(entry.format(0, n) for n in range(9)))
        lab.set_table_limit("s1", 3)
        lab.ofctl("s1", "add-flow", f"idle_timeout=1000,{entry.format(1, 3)}")
        lab.set_table_limit("s1", 3, "evict")  # what has a time to live makes room
        lab.ofctl("s1", "add-flow", entry.format(1, 4))
        lab.set_table_limit("s1", None)
        lab.ofctl("s1", "add-flows", "-", "--bundle", "-OOpenFlow14", text=entry.format(1, 5))
        assert lab.ofctl("s1", "dump-flows", "table=1").count("actions") == 4


@pytest.mark.parametrize("datapath", ["netdev", "dummy"])
def test_a_trace_tells_what_a_switch_would_do(datapath: str) -> None:
    topology = line(3)
    with a_lab(topology, datapath=datapath) as lab:
        install(lab, path_lines(topology))
        shown = lab.trace("s1", 2, "udp6,ipv6_dst=ff0e::1")
        assert f'bridge("{lab.plan.bridge("s1")}")' in shown
        # Patch ports lead through all switches in one look-up, cables end it.
        assert (f'bridge("{lab.plan.bridge("s3")}")' in shown) == (datapath == "dummy")
        assert "ipv6_dst=ff0e::/16" in shown
        assert "Datapath actions: drop" in lab.trace("s1", 2, "udp6,ipv6_dst=ff0f::1")
        with pytest.raises(LabError):
            lab.trace("s1", 2, "no flow")


def test_dummies_need_no_root_and_forward_all_the_same(tmp_path: Path) -> None:
    topology = line(3)
    with a_lab(topology, datapath="dummy", run=tmp_path) as lab:
        install(lab, path_lines(topology))
        into = lab.plan.interface(topology.attachment(HostId("h1")))
        lab.appctl(
            "netdev-dummy/receive", into, "in_port(1),eth_type(0x86dd),ipv6(dst=ff0e::1,proto=17),udp()"
        )
        wait_for(lambda: "n_packets=1," in lab.ofctl("s3", "dump-flows"))
        assert [one.name for one in labs(tmp_path)] == [lab.name]
        with pytest.raises(LabError, match="no namespaces"):
            lab.host("h1")
    assert not any(tmp_path.iterdir())


def test_without_root_interfaces_are_refused_in_one_line_and_dummies_are_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    program = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from plerion.lab import Lab\n"
        "from plerion.topology import line\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "run = Path(sys.argv[1])\n"
        "lab = asyncio.run(Lab.up(line(2), 'nobody', datapath='dummy', run=run))\n"
        "assert 'dpid:0000000000000001' in lab.ofctl('s1', 'show')\n"
        "asyncio.run(lab.down())\n"
        "try:\n"
        "    asyncio.run(Lab.up(line(2), 'nobody', run=run))\n"
        "except ValueError as refusal:\n"
        "    print(refusal)\n"
    )
    place = Path("/tmp") / f"plerion-{uuid4().hex[:8]}"
    place.mkdir()
    place.chmod(0o777)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, place], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "interfaces and namespaces need root; run it as root, or with --datapath dummy"
        ]
        assert not any(place.iterdir())
    finally:
        place.rmdir()


def test_the_commands_do_what_they_say() -> None:
    name = f"c{os.getpid()}"
    facts = json.loads(plerion("lab", "up", "ring:3", "--name", name, "--controller", "none", "--json"))
    try:
        assert (facts["switches"], facts["hosts"], facts["links"]) == (3, 3, 6)
        assert "is there already" in plerion("lab", "up", "ring:3", "--name", name, code=2)
        found = json.loads(plerion("lab", "status", "--name", name, "--json"))["labs"]
        assert found[0]["faults"] == []
        Lab.find(name).stop_switch("s3")
        assert (
            "s3 is stopped"
            in json.loads(plerion("lab", "status", "--name", name, "--json", code=1))["labs"][0]["faults"]
        )
        assert name in plerion("lab", "status", code=1)
        shell: list[str | Path] = [Path(sys.executable).with_name("plerion"), "lab", "exec", "--name", name]
        shown = subprocess.run(
            [*shell, "h2", "--", "ip", "-6", "address"], capture_output=True, text=True, check=True
        )
        assert "fd00::2/128" in shown.stdout
        assert subprocess.run([*shell, "h2", "sh", "-c", "exit 7"], check=False).returncode == 7
        assert "there is no host 'h9'" in plerion("lab", "exec", "--name", name, "h9", "--", "true", code=2)
        assert "there is no lab" in plerion("lab", "exec", "--name", "nolab", "h1", "--", "true", code=2)
    finally:
        assert f"lab {name} is down" in plerion("lab", "down", "--name", name)
    assert f"there is no lab {name}" in plerion("lab", "down", "--name", name)
    assert "there is no such lab" in plerion("lab", "status", "--name", name, "--json", code=1)
    assert "at most 64" in plerion("lab", "up", "ring:65", "--name", name, code=2)
    assert "there is no datapath 'kernel'" in plerion("lab", "up", "ring:3", "--datapath", "kernel", code=2)


def test_switches_know_their_controller_by_its_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("switches.example")
    files = Tls(tmp_path / "key", tmp_path / "certificate", tmp_path / "authority")
    client.private_key_pem.write_to_path(files.key)
    client.cert_chain_pems[0].write_to_path(files.certificate)
    authority.cert_pem.write_to_path(files.authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED

    async def scene() -> None:
        said: asyncio.Queue[tuple[bytes, Any]] = asyncio.Queue()

        async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await said.put((await reader.readexactly(2), writer.get_extra_info("peercert")))
            writer.close()

        async with await asyncio.start_server(greeted, "127.0.0.1", 0, ssl=context) as listening:
            port = listening.sockets[0].getsockname()[1]
            lab = await Lab.up(line(2), f"t{uuid4().hex[:12]}", f"ssl:127.0.0.1:{port}", tls=files)
            try:
                hello, certificate = await asyncio.wait_for(said.get(), SECONDS)
                assert hello[1] == 0  # a hello
                assert certificate["subjectAltName"] == (("DNS", "switches.example"),)
            finally:
                await lab.down()

    asyncio.run(scene())


def test_files_that_are_missing_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    files = Tls(tmp_path / "key", tmp_path / "certificate", tmp_path / "authority")
    with pytest.raises(LabError, match="there is no file"):
        asyncio.run(Lab.up(line(2), "unbuilt", "ssl:127.0.0.1:1", tls=files))
    assert status(Place("unbuilt")).faults == ("there is no such lab",)


def shaped(**amounts: float) -> Topology:
    links = (Link("s1", 1, "s2", 1, **amounts), Link("s1", 2, "h1", 1), Link("s2", 2, "h2", 1))
    return Topology((SwitchId("s1"), SwitchId("s2")), (HostId("h1"), HostId("h2")), links)


def test_a_link_has_the_capacity_of_the_topology() -> None:
    topology, events, size = shaped(capacity=1e6), 60, 1_000
    with a_lab(topology, shape=True) as lab:
        install(lab, path_lines(topology))
        taken, source = receiver(lab, "h2"), sender(lab, "h1")
        began = monotonic()
        for _ in range(events):
            source.sendto(bytes(size), ("ff0e::1", EVENT_PORT))
        for _ in range(events):
            taken.recv(2048)
        took = monotonic() - began
        # 60 times 1,062 bytes at a megabit a second take half a second; the first 3,100 bytes go at once.
        assert took > (events * (size + 62) - 2 * 3_100) * 8 / 1e6, took


def test_a_latency_is_kept_or_refused_in_one_line() -> None:
    """Depends on the kernel: one without netem cannot delay packets, and the lab says so and leaves nothing."""
    topology, name = shaped(latency=0.05), f"t{uuid4().hex[:12]}"
    try:
        lab = asyncio.run(Lab.up(topology, name, None, shape=True))
    except LabError as refusal:
        known = (
            str(refusal) == "this kernel has no netem, which delays packets; build the lab without --shape"
        )
        nothing = status(Place(name)).faults == ("there is no such lab",)
        if not (known and nothing):
            raise
        return
    try:
        install(lab, path_lines(topology))
        began = monotonic()
        wait_for(Line(lab).crossed)
        assert monotonic() - began > 0.05
    finally:
        asyncio.run(lab.down())
        while OPEN:
            OPEN.pop().close()


def test_a_lab_is_found_again_as_it_was_built() -> None:
    with a_lab(ring(3), links="patch", table_limit=9) as lab:
        again = Lab.find(lab.name)
        assert again.plan == lab.plan
        assert again.host("h1") == lab.host("h1")
    with pytest.raises(LabError, match="there is no lab"):
        Lab.find(lab.name)
