"""Speed of the embedded store: `python -m bench`."""
