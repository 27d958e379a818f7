"""The command line: results on stdout, progress and problems on stderr."""
