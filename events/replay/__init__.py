"""Use of recorded events: replay, verification, what-if, explanation, states and their differences."""
