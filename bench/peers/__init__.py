"""Commonplace beside other memories and vector stores: the same texts, one run, one machine."""
