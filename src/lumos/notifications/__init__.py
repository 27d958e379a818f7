"""Notifications about changes: routing, message texts and delivery."""
