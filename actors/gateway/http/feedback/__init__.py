"""What an application says of how an exchange turned out: the endpoint, and the way of it into the log."""
