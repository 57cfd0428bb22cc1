"""Moving memories: files of our own format, files of other products, and from one store to another.

It decodes and encodes; what may leave or come in is the engine's to say.
"""
