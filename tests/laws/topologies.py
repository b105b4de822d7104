"""Hypothesis strategies for topologies, shared by the laws of every layer above."""

from collections import Counter

from hypothesis import strategies as st

from plerion.topology import HostId, Link, SwitchId, Topology

amounts = st.none() | st.floats(min_value=1e-6, max_value=1e12)


@st.composite
def topologies(draw: st.DrawFn, max_switches: int = 8) -> Topology:
    """Connected networks with at least one host; they shrink towards a line with one host per switch.

    Now and then a switch has several hosts or none, two switches have parallel links, and ports leave gaps.
    """
    count = draw(st.integers(1, max_switches))
    number = st.integers(1, count)
    pairs = [(i - draw(st.integers(1, i - 1)), i) for i in range(2, count + 1)]
    extra = draw(st.lists(st.tuples(number, number), max_size=count))
    pairs += [pair for pair in extra if pair[0] != pair[1]]
    one_each = draw(st.booleans().map(lambda several: not several))
    places = list(range(1, count + 1)) if one_each else draw(st.lists(number, min_size=1, max_size=count + 2))
    ends = [(f"s{a}", f"s{b}") for a, b in pairs] + [
        (f"s{a}", f"h{i}") for i, a in enumerate(places, start=1)
    ]
    stride = draw(st.integers(1, 3))
    used: Counter[str] = Counter()
    links = []
    for pair in ends:
        a, b = draw(st.permutations(pair))
        for end in (a, b):
            used[end] += 1 if end.startswith("h") else stride
        links.append(Link(a, used[a], b, used[b], draw(amounts), draw(amounts)))
    return Topology(
        tuple(SwitchId(f"s{i}") for i in range(1, count + 1)),
        tuple(HostId(f"h{i}") for i in range(1, len(places) + 1)),
        tuple(links),
    )
