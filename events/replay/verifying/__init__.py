"""Whether recorded decisions and effects come out again as they were recorded."""
