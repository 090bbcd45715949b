"""What a turn of talk is, by trained weights: a question, a courtesy, a task, and so on."""
