"""Agents seen as places, with layered recall and importance that fades."""
