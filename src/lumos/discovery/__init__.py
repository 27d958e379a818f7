"""Discovery: from sources to recorded datasets; explain, hints and watch."""
