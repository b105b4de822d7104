"""The lab: a topology as Open vSwitch bridges, and hosts as network namespaces, on one machine.

`plan` says what a lab is, `wires` and `bridges` what commands make it, as data; `build` and `run` carry them out;
`residue` finds and removes whatever there is of a lab by its name alone. `Lab` is what others use.
"""

from plerion.lab.buffers import LabWarning
from plerion.lab.error import LabError
from plerion.lab.lab import Lab, take_down
from plerion.lab.plan import Options, Plan, Tls
from plerion.lab.residue import Residue
from plerion.lab.status import Status, labs, status

__all__ = [
    "Lab",
    "LabError",
    "LabWarning",
    "Options",
    "Plan",
    "Residue",
    "Status",
    "Tls",
    "labs",
    "status",
    "take_down",
]
