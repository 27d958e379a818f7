"""When sources are looked at again: a loop that polls, waits and backs off."""
