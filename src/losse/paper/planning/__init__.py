"""Planning in world models: planning alone, and tasks that come one after the other."""
