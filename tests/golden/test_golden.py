"""Canonical bytes and hashes: byte for byte those on file, on every interpreter, in every order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from blake3 import blake3

from planner.hashing import STATS, plan_bytes, plan_hash, pool_bytes
from planner.selection.budget import resolve_budget
from planner.selection.select import select
from planner.types import Candidate, SelectionPolicy
from tests.golden.core import GOLDEN, read_cases, results

ROOT = Path(__file__).resolve().parents[2]
CORE = Path(__file__).with_name("core.py")
INTERPRETERS = ("3.11", "3.12", "3.13")

# The core without what `import planner` brings along, so that NumPy and BLAKE3 are all that it needs.
BOOTSTRAP = """
import runpy, sys, types
root, core = sys.argv[1], sys.argv[2]
planner = types.ModuleType("planner")
planner.__path__ = [root + "/planner"]
sys.modules["planner"] = planner
sys.argv = sys.argv[2:]
runpy.run_path(core, run_name="__main__")
"""


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case["name"])
def test_bytes_and_hashes_are_those_on_file(case: dict[str, Any]) -> None:
    assert results(case) == case["expected"]
    for what in ("plan", "pool"):
        data = bytes.fromhex(case["expected"][f"{what}_bytes"])
        assert blake3(data).hexdigest() == case["expected"][f"{what}_hash"]


def test_the_golden_cases_cover_every_outcome_and_both_plan_models() -> None:
    cases = read_cases()
    pools = b"".join(bytes.fromhex(case["expected"]["pool_bytes"]) for case in cases)
    for outcome in ("selected", "duplicate", "unpackable", "over_budget", "over_source_cap", "unsliceable"):
        assert _str(outcome) in pools
    assert {case["policy"]["plan_model"] for case in cases} == {"v1", "v2"}


def test_the_bytes_of_a_plan_are_laid_out_as_the_page_says() -> None:
    text_hash = blake3("é".encode()).digest()
    chosen = Candidate("é.md", 7, 3, 5, "code", "cache", 0.5, 4, text_hash)
    other = Candidate("b", 7, 0, 9, "paragraph", "truth", 0.1, 99)
    policy = SelectionPolicy({"code": 0.9, "paragraph": 1.0}, 0.5, 0.8)
    budget = resolve_budget(10, counter="caller", bound="estimate", max_frac=0.5)
    selection = select([other, chosen], policy, budget, kind_missing=1, merged=2)
    stats = dict.fromkeys(STATS, 0) | {
        "budget_requested": 10,
        "candidates": 2,
        "selected": 1,
        "unpackable": 1,
    }
    stats |= {"kind_missing": 1, "merged": 2, "token_estimate": 1}
    head = _str("v1") + _str("external") + _str("caller") + pack("<QQQ", 9, 4, 4)
    tail = pack("<I", 12) + b"".join(_str(name) + pack("<Q", value) for name, value in stats.items())
    first = _str("é.md") + pack("<qQQ", 7, 3, 5) + _str("code") + b"\x01"
    first += pack("<d", 0.5 * 0.9 * 0.5) + pack("<Q", 4) + text_hash
    second = _str("b") + pack("<qQQ", 7, 0, 9) + _str("paragraph") + b"\x00"
    second += pack("<d", 0.1) + pack("<Q", 99) + bytes(32)
    models = {"plan_model": "v1", "score_model": "external"}
    plan = b"evidence-plan\x00v1\x00" + head + pack("<I", 1) + first + tail
    assert plan_bytes(selection, **models) == plan
    assert plan_hash(selection, **models) == blake3(plan).hexdigest()
    pool = head + pack("<I", 2) + first + _str("selected") + second + _str("unpackable") + tail
    assert pool_bytes(selection, **models) == b"evidence-pool\x00v1\x00" + pool


@pytest.mark.parametrize(("hash_seed", "order"), [("0", 1), ("1", 2), ("4294967295", 3), ("random", 4)])
def test_neither_hash_seed_nor_input_order_changes_a_byte(hash_seed: str, order: int) -> None:
    assert _run(sys.executable, order, PYTHONHASHSEED=hash_seed) == _expected()


@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_supported_python_gives_the_same_bytes(version: str, pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache is not None
    python = _core_environment(version, pytestconfig.cache.mkdir(f"core-{version}"))
    assert _run(str(python), 5) == _expected()


def _expected() -> dict[str, Any]:
    return {case["name"]: case["expected"] for case in read_cases()}


def _run(python: str, order: int, **variables: str) -> dict[str, Any]:
    command = [python, "-c", BOOTSTRAP, str(ROOT), str(CORE), str(GOLDEN), str(order)]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **variables})
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _core_environment(version: str, folder: Path) -> Path:
    """Return a Python of that version with NumPy and BLAKE3: this one, or one made once in pytest's cache."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    python = folder / "bin" / "python"
    if _works(python, "import numpy, blake3"):
        return python
    base = next((found for found in _interpreters(version) if _works(found, "import venv")), None)
    if base is None:
        pytest.skip(f"there is no python{version} on this machine")
    subprocess.run([base, "-m", "venv", "--clear", folder], check=True, capture_output=True)
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "numpy", "blake3"]
    if subprocess.run(install, check=False, capture_output=True).returncode != 0:
        pytest.skip(f"NumPy and BLAKE3 cannot be installed for python{version}")
    return python


def _interpreters(version: str) -> list[Path]:
    """Return where a Python of that version may be: on the path, or among pyenv's."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(pyenv.glob(f"versions/{version}*/bin/python{version}"))
    return [*([Path(found)] if found else []), *installed]


def _works(python: Path, statement: str) -> bool:
    try:
        return subprocess.run([python, "-c", statement], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _str(text: str) -> bytes:
    return pack("<I", len(text.encode())) + text.encode()
