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

**As of a version.** The store is append-only and shared by all states that descend from one another. An ``Index`` is a
store with the version it is asked as of; states that went different ways have stores of their own. See ``handle``.

**Two engines**, ``compiled`` (numba, optional) and ``interpreted`` (numpy), work on the same arrays and give the same
answers; either may take over from the other at any time.

Sources: Bayardo, Ma, Srikant, "Scaling up all pairs similarity search" (2007); Xiao, Wang, Lin, Yu, Wang, "Efficient
similarity joins for near-duplicate detection" (2011).
"""

from actors.intuition.index.handle import Found, Index, Nearest
from actors.intuition.index.query import similarity
from actors.intuition.index.store import Entry
from actors.intuition.index.table import NONE, Hashes, Sizes

__all__ = ["NONE", "Entry", "Found", "Hashes", "Index", "Nearest", "Sizes", "similarity"]
