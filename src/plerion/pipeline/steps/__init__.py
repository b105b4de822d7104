"""Each step takes a table of events and gives a small table, or the events with a column more.

A step runs a kernel over whole Arrow batches where the events are; each partition gives its partial result, and Spark
adds the partial results up. Nothing that grows with the events reaches the driver, and no step compares events with
each other. What was never counted may have no row. Beside a step stands the function that brings its table home as the
value that `learning` works with.
"""
