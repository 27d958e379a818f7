"""Groups files into datasets, on rows that already stand for many files each."""
