"""The command line: results on stdout, progress and complaints on stderr."""
