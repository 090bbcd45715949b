"""The exact index of signatures: which of many sets of shingles are nearest to a given one by cosine.

**What is exact.** Every answer is the one that comparing with each entry would give; a property test does that. Nothing
is approximated, so recall is 1.0 by construction. For sets A (the query, n elements) and B (m elements) that share o,
the similarity is o / sqrt(n m).

**What need not be read.** A similarity of t needs o >= t sqrt(n m), and m >= o, hence o >= t^2 n: an entry that is
similar enough shares one of any n - ceil(t^2 n) + 1 of the query's shingles. So the query's lists are read from the
shortest on (*prefix filter*, the rarest shingles first), and reading stops where an entry not yet met can no longer
reach what is sought: the floor, or the nearest motif so far. Before that, an entry that is first met where r lists are
left is passed over if its size m is too large for r shingles to suffice (*length* and *position filter*). What was
met is compared in full. The prefix is taken of the query only, and all shingles of an entry are listed: what is rare
changes with every addition, and prefixes of the entries would have to be taken anew each time.

**The situation's type** is an element of every set but is in no list: it counts in o, n and m, and never makes a match.

**A value over a store.** A store is changed in place and handed from state to state; it answers for the latest of
them. An ``Index`` is a store with the version it was made at; a state whose store has moved on gets one of its own. See
``index_value``.

**An allowance** bounds what a search may look at, in postings. Where it does not suffice (``planned``), the shortest
lists are read that it suffices for; the answer is then the exact one among the entries that are in one of these, and
says so. What a search counts for and where it is cut depend on the entries alone, not on the engine or the history.

**Two engines**, ``compiled`` (numba, optional) and ``interpreted`` (numpy), work on the same arrays and give the same
answers; either may take over from the other at any time.

Sources: Bayardo, Ma, Srikant, "Scaling up all pairs similarity search" (2007); Xiao, Wang, Lin, Yu, Wang, "Efficient
similarity joins for near-duplicate detection" (2011).
"""

from actors.intuition.index.hash_table import NONE, Hashes, Sizes
from actors.intuition.index.index_value import COMPILED_FROM, Found, Index, Nearest, warm_engine
from actors.intuition.index.query import UNLIMITED, similarity
from actors.intuition.index.store import Entry

__all__ = [
    "COMPILED_FROM",
    "NONE",
    "UNLIMITED",
    "Entry",
    "Found",
    "Hashes",
    "Index",
    "Nearest",
    "Sizes",
    "similarity",
    "warm_engine",
]
