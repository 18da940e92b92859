"""Speed and accuracy of the core, measured against the paper's own update in one run."""
