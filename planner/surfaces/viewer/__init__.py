"""The trace viewer: plans, and why, for people; a part of the HTTP service."""

from planner.surfaces.viewer.app import create_viewer, part

__all__ = ["create_viewer", "part"]
