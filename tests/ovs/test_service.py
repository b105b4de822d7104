"""`plerion up` on real Open vSwitch, refused senders and floods included: what hosts ask is what packets do."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from plerion.lab import Lab
from plerion.topology import HostId
from plerion.wire.control import Advertise, KeepAlive, Ready, Refused, Subscribe, Unknown
from tests.ovs.service_world import PROGRAM, Client, Process, a_lab, clients, process, wait_for

pytestmark = pytest.mark.ovs

Make = Callable[[str], Client]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with a_lab() as made:
        yield made


@pytest.fixture
def client(lab: Lab) -> Iterator[Make]:
    with clients(lab) as make:
        yield make


@pytest.fixture(scope="module")
def up(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A controller that several tests share; its quotas are small."""
    found = process(lab, tmp_path_factory.mktemp("up"), "quotas: {subscriptions: 60}\nbeacon_seconds: 0.5")
    found.start()
    yield found
    assert found.end() == 0, found.log


def test_what_hosts_ask_in_band_is_what_the_network_does(up: Process, client: Make) -> None:
    h1, h2, h8 = client("h1"), client("h2"), client("h8")
    for host in (h1, h2, h8):
        host.join()
    assert isinstance(h1.ask(Advertise(next(h1.numbers), h1.session, "a", "x < 128")), Ready)
    assert isinstance(h8.subscribe("low", "x < 64"), Ready)
    assert isinstance(h2.subscribe("all", "TRUE"), Ready)
    for x in (0, 63, 64, 127):
        h1.publish(x, 9, f"event {x}")
    assert sorted(h8.received()) == ["event 0", "event 63"]
    assert sorted(h2.received()) == ["event 0", "event 127", "event 63", "event 64"]
    assert isinstance(h8.subscribe("wrong", "x <"), Refused)
    listed = up.get("/v1/subscriptions?host=h8")
    assert listed["subscriptions"] == [{"id": f"h8/{h8.session}/low", "host": "h8", "filter": "x < 64"}]


def refused_packets(up: Process) -> dict[str, int]:
    found = up.get("/v1/statistics")
    return {f"{s}:{p}": n for s, counters in found.items() for p, n in counters["refused"].items() if n}


def test_the_edge_drops_and_counts_what_was_not_advertised_or_comes_in_anothers_name(
    up: Process, client: Make, lab: Lab
) -> None:
    h3, h4, h5 = client("h3"), client("h4"), client("h5")
    for host in (h3, h5):
        host.join()
    h3.ask(Advertise(next(h3.numbers), h3.session, "a", "x >= 192"))
    assert isinstance(h5.subscribe("all", "TRUE"), Ready)
    before = refused_packets(up)
    h3.publish(200, 1, "advertised")
    h3.publish(150, 1, "not advertised")
    h3.forge("h1", 200, 1, "as another one")
    h3.forge("h3", 200, 1, "by hand")
    h4.publish(200, 1, "never said a word")
    assert sorted(h5.received()) == ["advertised", "by hand"]
    after = refused_packets(up)
    counted = Counter(after) - Counter(before)
    places = {host: str(lab.topology.attachment(HostId(host))) for host in ("h3", "h4")}
    assert counted == {places["h3"]: 2, places["h4"]: 1}


def test_a_flood_from_one_host_is_refused_by_quota_and_another_is_served(up: Process, client: Make) -> None:
    flooder, other = client("h6"), client("h7")
    flooder.join()
    other.join()
    said = threading.Event()

    def flood() -> None:
        for i in range(10_000):
            flooder.send(Subscribe(next(flooder.numbers), flooder.session, f"q{i}", f"x = {i % 256}"))
            if i == 500:
                said.set()

    stream = threading.Thread(target=flood)
    stream.start()
    assert said.wait(30)
    assert isinstance(other.subscribe("mine", "x < 4"), Ready)
    stream.join()
    refusals = Counter[str]()
    while (reply := flooder.reply(1.0)) is not None:
        if isinstance(reply, Refused):
            refusals[reply.reason.split(":")[0].split(",")[0]] += 1
    assert refusals["h6 has 60 subscriptions"] > 0
    assert up.get("/v1/subscriptions?host=h6")["count"] == 60
    assert isinstance(other.subscribe("more", "y < 4"), Ready)
    other.publish(1, 1, "nothing advertised")


def test_a_host_that_gives_no_sign_of_life_is_withdrawn(up: Process, client: Make) -> None:
    h7 = client("h7")
    h7.join(lease_seconds=1.0)
    assert isinstance(h7.subscribe("q", "x = 250"), Ready)
    name = f"h7/{h7.session}/q"

    def there() -> bool:
        return any(one["id"] == name for one in up.get("/v1/subscriptions?host=h7")["subscriptions"])

    assert there()
    wait_for(lambda: not there(), "the withdrawal")
    assert isinstance(h7.ask(KeepAlive(next(h7.numbers), h7.session)), Unknown)


def test_a_switch_with_an_unknown_id_is_sent_away_and_a_second_controller_ends_in_one_line(
    up: Process,
) -> None:
    before = up.metric("plerion_switches_sent_away_total")
    with socket.create_connection(("127.0.0.1", up.openflow_port)) as stranger:
        stranger.sendall(struct.pack("!BBHI", 4, 0, 8, 1))
        stranger.settimeout(10)
        while stranger.recv(8)[1:2] not in (b"\x05", b""):
            pass
        stranger.sendall(struct.pack("!BBHIQIBB2xII", 4, 6, 32, 2, 0xDEAD, 0, 2, 0, 0, 0))
        wait_for(lambda: up.metric("plerion_switches_sent_away_total") > before, "the refusal")
    second = subprocess.run(
        [PROGRAM, "up", "--config", str(up.folder / "plerion.yaml")],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert second.returncode == 2
    (line,) = second.stderr.splitlines()
    assert "another controller has it open" in line
    assert up.ready()


def test_links_are_learned_and_agree_with_what_is_declared(up: Process) -> None:
    wait_for(lambda: up.metric("plerion_links_wrong") == 0, "every link heard")
    assert up.get("/v1/topology")["differences"] == []
    shown = subprocess.run(
        [PROGRAM, "flows", "s7", "--api", f"http://127.0.0.1:{up.api_port}"],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    assert "s7" in shown
