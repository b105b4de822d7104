"""eventlog: what was sent, delivered and asked for, sampled into Parquet files. After wire, before the shells.

`records` says what the log holds, `writer` adds to it, `reader` gives it back, `imports` fills it from files. Spark
reads the same files (`LogReader.paths` says which), but nothing here knows of it.
"""
