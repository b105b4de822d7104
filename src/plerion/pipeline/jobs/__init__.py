"""jobs: whole pieces of work on Spark, from files to an answer; each is a function of a session."""
