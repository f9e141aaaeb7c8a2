"""The trace: a plan as it was decided, written down, read back and questioned. Pure; others do the I/O."""
