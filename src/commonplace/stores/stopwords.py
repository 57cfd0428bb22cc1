"""Words that questions are made of and answers are not found by; folded as `text` folds them."""

from __future__ import annotations

_ENGLISH = """
a about again all also am an and any are aren as at be because been before being between both but by can
cannot could couldn did didn do does doesn doing don during each for from further get had hadn has hasn have
haven having he her here hers herself him himself his how i if in into is isn it its itself just let me more
most my myself no nor not of off on once only or other our ours ourselves out over own please same shall she
should shouldn so some such than that the their theirs them themselves then there these they this those
through to too under until up us very was wasn we were weren what when where which while who whom whose why
will with won would wouldn you your yours yourself yourselves tell know say said ever
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis das dass dem den der des die doch du ein eine einem einen einer
eines er es fur hat haben hatte ich ihr im in ist ja kann mein mich mir mit nach nicht noch nur oder sein
sich sie sind und uns vom von vor wann war waren warum was welche welcher welches wenn wer wie wir wird wo
zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette comme comment dans de des du elle en est et etait il ils je la le les leur lui ma
mais me mes moi mon ne nous on ont ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi
sa se ses son sont sur ta te tu un une vous
"""
_SPANISH = """
al como con cual cuales cuando de del donde el ella ellos en era es esa ese esta este ha han hay la las le
lo los mas mi mis muy no o para pero por porque que quien quienes se ser si sin sobre son su sus tiene un
una uno y ya yo
"""

STOPWORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH}".split())
