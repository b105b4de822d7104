"""The lab: a topology as Open vSwitch bridges, and hosts as network namespaces, on one machine.

`plan` says what there must be, as data; `build` and `run` make it; `residue` finds and removes whatever there is of a
lab by its name alone. `Lab` is what others use.
"""

from plerion.lab.error import LabError
from plerion.lab.lab import Lab
from plerion.lab.plan import Options, Plan, Tls
from plerion.lab.residue import Residue

__all__ = ["Lab", "LabError", "Options", "Plan", "Residue", "Tls"]
