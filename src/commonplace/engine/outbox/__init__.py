"""Stores beside the primary: how they are asked, how changes reach them, and how they are made equal again."""
