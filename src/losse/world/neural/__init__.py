"""World models on neural networks, the baselines of the paper; they need JAX."""
