"""What is well and what is not: the doctor, readiness, and what they look at."""
