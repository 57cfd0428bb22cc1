"""Transports: they carry calls to the dialects and know nothing of what they mean."""
