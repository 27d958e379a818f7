"""Jobs that run in the background, and schedules."""
