"""experiments: workloads on real data and what they show. Above the controller, below the command line."""
