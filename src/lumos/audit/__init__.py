"""The audit log: who did what, when, from where, and whether it was tampered with."""
