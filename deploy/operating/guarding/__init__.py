"""What operators tell the guards: patterns, precedents, allowances, and orders to breakers and loops."""
