"""cli: one file a verb. Above everything else."""
