"""Compiled array functions: plain arrays in, plain arrays out, no classes.

Each module answers one question: how features are made (`encode`), how the memories
A and B grow (`accumulate`), how Algorithm 2 renews the active weights (`block_update`),
how predictions are summed (`predict`), and how the large packed A is multiplied (`packed`).
"""
