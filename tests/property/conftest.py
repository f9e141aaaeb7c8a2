"""No deadlines: a test asserts what is true, not how fast this machine was."""

from hypothesis import settings

settings.register_profile("planner", deadline=None)
settings.load_profile("planner")
