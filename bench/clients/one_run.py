"""One measurement in a process of its own: `one_run.py MODULE JSON` prints what the module's `run` returns, as JSON."""

import importlib
import json
import sys

if __name__ == "__main__":
    print(json.dumps(importlib.import_module(sys.argv[1]).run(**json.loads(sys.argv[2]))))
