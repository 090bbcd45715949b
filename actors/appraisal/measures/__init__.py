"""What is measured of one text: its affect, biases, risks, trust and kind of turn, and its embedding."""
