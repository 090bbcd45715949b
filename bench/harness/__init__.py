"""What benchmarks share: servers, processes under measurement, loads and tables."""
