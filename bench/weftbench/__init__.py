"""weft and its rivals side by side: one process, one run, interleaved round by round. See
bench/README.md."""
