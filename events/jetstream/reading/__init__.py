"""Reading the stream: in order by each worker, and as work that consumers share."""
