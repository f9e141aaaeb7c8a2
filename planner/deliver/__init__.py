"""From ranked hits to the exact text that a model reads, under a hard cap (delivery.md). Pure.

The package is also the function of its name: `planner.deliver(results, …)` is that of `unplanned`.
"""

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A package that can be called; importing any module of it would replace a function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Deliver ranked results without a plan."""
        from planner.deliver.unplanned import deliver  # noqa: PLC0415  # the modules import this one

        return deliver(*args, **options)


sys.modules[__name__].__class__ = _Package
