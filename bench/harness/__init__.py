"""Shared by the benchmarks: servers, the processes that are measured, their loads, and tables."""
