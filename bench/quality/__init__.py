"""The quality of verdicts and of routing on labelled texts, not their speed."""
