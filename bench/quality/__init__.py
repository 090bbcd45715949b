"""What is judged and chosen on labelled texts, rather than how long it takes."""
