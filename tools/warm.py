"""Compiles the kernels, so that the first command of a user does not wait for the compiler. About a minute, once."""

from dataclasses import replace

from plerion.client.rehearsal import rehearse as rehearse_client
from plerion.controller.rehearsal import rehearse
from plerion.experiments.synthetic import PRESETS, workload
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.judge import Judge
from plerion.learning.propose import Request, propose, summaries
from plerion.matching.bitset import BitsetMatcher
from plerion.matching.blame import misses
from plerion.matching.evaluate import evaluate
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology.generate import line

load = workload(replace(PRESETS["zipf"], subscriptions=20, events=200))
for method, select in (("boundary", "none"), ("adaptive", "cs")):
    index = propose(load, summaries(load), Request(method=method, select=select, clusters=4)).index
    found, codes = covers(index, load.offsets, load.bounds, 8), encode(index, load.points)
    evaluate(load.points, codes, BitsetMatcher.of(load.offsets, load.bounds), found, load.hosts)
    misses(load.points, codes, found, load.offsets, load.bounds)
    Judge.of(load, 8).rate(index)
    rehearse(index)
    rehearse_client(index)
OpenFlowSouthbound(line(2)).rehearse()
