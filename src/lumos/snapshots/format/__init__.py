"""The documented format of portable snapshots, with several encodings."""
