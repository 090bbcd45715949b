"""What is measured of one text: its affect (pleasant, exciting), biases, risks, trust, kind of turn, and embedding."""
