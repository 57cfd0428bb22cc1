"""What tells nothing of a memory: its vector knows of it, but no token vector of it is worth keeping.

Longer lists cost: without the fifty commonest words of English late interaction found .015 less on long chats.
"""

from __future__ import annotations

#: Articles and the like of the languages that memories are most often in, in lower case; none that is a word or part of
#: a name in another of them (die, la, los).
FUNCTION_WORDS = frozenset(["the", "a", "an", "and", "of", "to", "der", "das", "und", "le", "les", "et", "el", "il"])
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»„“”‘’‚‹›–—…·•°´¨¿¡、。「」『』（），：；！？"
