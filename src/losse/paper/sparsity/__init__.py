"""Figure 7: gradient descent and follow-the-leader on the same sparse features."""
