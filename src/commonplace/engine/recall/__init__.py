"""The small parts of a recall, each pure: names, times, literals, context, duplicates, and the numbers they give."""
