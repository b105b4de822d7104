"""The command line as a file for `spark-submit`, which starts programs by their path.

    spark-submit --master spark://host:7077 "$(python -m plerion.cli.submit)" index build --schema schema.yaml …

Without arguments it prints that path. Spark's settings come from `spark-submit`; `--master` is then not looked at.
"""

import sys

from plerion.cli.main import run

if __name__ == "__main__":
    if len(sys.argv) > 1:
        run()
    else:
        print(__file__)
