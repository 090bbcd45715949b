"""Pure code that actors share and deciders may use. It is no actor."""
