"""The service over HTTP: the library's functions as routes, nothing decided here."""

from __future__ import annotations
