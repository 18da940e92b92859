"""Which streams does `losse bench accuracy` learn?  Transitions of an environment, three kinds."""
