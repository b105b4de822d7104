"""southbound: the one way in which tables reach switches, real or simulated. After simnet, before lab."""
