"""What disguises are undone to."""
