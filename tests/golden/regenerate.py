"""Write the expected bytes and hashes of the golden file anew: `python -m tests.golden.regenerate`.

A new case needs its inputs only. Existing bytes change only with a new version in the tags of
`planner/hashing.py`: stored plans keep the hashes that they were given.
"""

from __future__ import annotations

import json

from tests.golden.core import GOLDEN, read_cases, results

if __name__ == "__main__":
    cases = [{**case, "expected": results(case)} for case in read_cases()]
    GOLDEN.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
