"""The record of the faults that tests inject: how many, how many were survived, how many rows were lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD = ("fault", "stage", "injected", "survived", "rows lost")


@dataclass
class Row:
    """What came of one fault at one stage."""

    injected: int = 0
    survived: int = 0
    rows_lost: int = 0


@dataclass
class FaultTable:
    """Collects reports; in a session there is one, the fixture `faults`."""

    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    def survived(self, fault: str, stage: str, rows_lost: int) -> None:
        """Report that a fault was injected, and how many rows were missing or doubled afterwards.

        A report of 0 says that the invariants were checked and hold; any other number fails the test.
        """
        row = self.rows.setdefault((fault, stage), Row())
        row.injected += 1
        row.survived += rows_lost == 0
        row.rows_lost += rows_lost
        assert rows_lost == 0, f"{fault} at {stage}: {rows_lost} rows were lost or doubled"

    def failed(self, test: str) -> None:
        """Report a test that failed before it could say what came of its fault."""
        self.rows.setdefault((test, "the test failed"), Row()).injected += 1

    def lines(self) -> Iterator[str]:
        """Yield the table in columns, in the order of the reports, and its totals."""
        totals = Row(*(sum(getattr(row, name) for row in self.rows.values()) for name in Row.__annotations__))
        cells = [HEAD, *(_cells(fault, stage, row) for (fault, stage), row in self.rows.items())]
        cells.append(_cells("all", "", totals))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(fault: str, stage: str, row: Row) -> tuple[str, ...]:
    return (fault, stage, str(row.injected), str(row.survived), str(row.rows_lost))
