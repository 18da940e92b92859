"""Figure 1: where world models are wrong while an agent's visits narrow."""
