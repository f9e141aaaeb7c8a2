"""Recall (Phase A): one request becomes one pool of candidates, by SQL, in one snapshot of one scope."""
