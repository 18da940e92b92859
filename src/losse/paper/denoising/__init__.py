"""Table 1: encoders on image denoising."""
