"""A file of a gigabyte is refused before it is read, within 300 MB of address space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GIGABYTE = 1 << 30

READ = """
import resource, sys
from planner.errors import OversizedInput
from planner.ingest import parse
from planner.reading import discover, read
from planner.settings import Settings

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
(file,) = discover([sys.argv[1]])
try:
    raw = read(file, Settings().max_file_bytes)
except OversizedInput as error:
    print(error.code, error.detail["max_file_bytes"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux")
@pytest.mark.parametrize(
    "name", ["a.txt", "a.py", "a.csv", "a.html", "a.pdf", "conversations.json", "a.mbox"]
)
def test_a_gigabyte_is_refused_whatever_its_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with file.open("wb") as sparse:
        sparse.truncate(GIGABYTE)
    ran = subprocess.run([sys.executable, "-c", READ, file], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["ingest.too_large", str(64 << 20)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux")
def test_a_gigabyte_from_a_pipe_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "zeros"
    with file.open("wb") as sparse:
        sparse.truncate(GIGABYTE)
    with file.open("rb") as piped:
        ran = subprocess.run(
            [sys.executable, "-c", READ, "-"], stdin=piped, capture_output=True, text=True, check=True
        )
    assert ran.stdout.split() == ["ingest.too_large", str(64 << 20)]
