"""matching: which events a filter really matches, and how far covers are from it. After index, before topology."""
