"""What actors share and deciders may use: pure, and no actor."""
