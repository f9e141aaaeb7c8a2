"""What people and programs meet: each parses, calls and prints; nothing is decided here."""
