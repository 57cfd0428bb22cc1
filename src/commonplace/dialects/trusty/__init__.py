"""trusty-memory: palaces, rooms and drawers over the engine's agents, fields and memories.

Nothing is loaded here: a server that was just spawned lists the tools from `tools` alone.
"""
