"""Faces that other libraries expect, each in a module of its own that imports that library."""
