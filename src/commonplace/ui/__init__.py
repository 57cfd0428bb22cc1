"""The page: what a person sees of the memory, and decides about it. Engine calls only; no store, no protocol.

Pages are made on the server and work without JavaScript. Nothing of another origin is ever asked for.
"""
