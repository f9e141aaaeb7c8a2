"""The routes of /v1 by what they do: plans, what is delivered of them, and what the store holds."""

from __future__ import annotations
