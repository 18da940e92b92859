"""The world model on the functional form, which imagines on JAX's device."""
