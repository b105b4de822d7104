"""pipeline: Spark reduces the workload to small tables that pure functions decide by. After eventlog, before cli."""
