"""Where memories are kept. One file (or folder) is one backend: dumb verbs, no policy."""
