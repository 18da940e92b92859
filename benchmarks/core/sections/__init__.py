"""One module per section of the benchmark, each with a function ``run(bench) -> Outcome``."""
