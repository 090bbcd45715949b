"""End-to-end tests with a language model attached, or with public corpora."""
