"""Examples of what stands beside a set: programs to copy from."""
