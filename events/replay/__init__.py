"""Reading recorded events back: replay, verification, explanation, states and their differences."""
