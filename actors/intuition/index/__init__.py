"""The exact index of signatures: which of many sets of shingles are nearest to a given one by cosine.

A shingle is a hash of three successive words. The entries are signatures of precedents (earlier situations with their
outcome); a *motif* is one of a precedent that did harm.

**What is exact.** Every answer equals the result of comparing with each entry; a property test checks that. Nothing is
approximated, so recall is 1.0 by construction. For sets A (the query, n elements) and B (m elements) that share o
elements, the similarity is o / sqrt(n m).

**What need not be read.** A similarity of t needs o >= t sqrt(n m), and m >= o, hence o >= t^2 n. So an entry that is
similar enough shares at least one of any n - ceil(t^2 n) + 1 of the query's shingles. The query's lists are read from
the shortest on (*prefix filter*, the rarest shingles first). Reading stops where an entry not yet found can no longer
reach the required similarity: the floor, or that of the nearest motif so far. Before that, an entry first found when r
lists are left is skipped if its size m is too large for r shingles to suffice (*length* and *position filter*). Entries
that were found are compared in full. The prefix is taken of the query only, and all shingles of an entry are listed:
which shingles are rare changes with every addition, so prefixes of the entries would have to be computed again each
time.

**The kind of situation** is an element of every set but is in no list: it counts in o, n and m, but is never a match
alone.

**A value over a store.** A store is changed in place and passed on from state to state; it answers for the latest of
them. An ``Index`` is a store with the version it was made at; a state whose store has moved on gets one of its own. See
``index_value``.

**A budget** limits what a search may read, in postings. If it is too small (``plan_reading``), only the shortest
lists are read, as many as it allows. The answer is then exact among the entries in these lists, and says that it was
cut. The cost of a search and the point where it is cut depend on the entries alone, not on the engine or the history.

**Two engines**, ``compiled`` (numba, optional) and ``interpreted`` (numpy), work on the same arrays and give the same
answers; either may continue for the other at any time.

Sources: Bayardo, Ma, Srikant, "Scaling up all pairs similarity search" (2007); Xiao, Wang, Lin, Yu, Wang, "Efficient
similarity joins for near-duplicate detection" (2011).
"""

from actors.intuition.index.hash_table import NO_ENTRY, Hashes, Sizes
from actors.intuition.index.index_value import COMPILED_FROM, Index, Nearest, SimilarEntry, warm_engine
from actors.intuition.index.query import UNLIMITED, Query, similarity
from actors.intuition.index.store import Entry

__all__ = [
    "COMPILED_FROM",
    "NO_ENTRY",
    "UNLIMITED",
    "Entry",
    "Hashes",
    "Index",
    "Nearest",
    "Query",
    "SimilarEntry",
    "Sizes",
    "similarity",
    "warm_engine",
]
