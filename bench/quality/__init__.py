"""Does recall find the right memories? `python -m bench.quality` measures it, `… tune` fits the weights again."""
