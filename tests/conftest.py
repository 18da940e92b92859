"""Shared test settings: hypothesis without deadlines, since a first call may compile."""

from hypothesis import settings

settings.register_profile("losse", deadline=None, max_examples=40)
settings.load_profile("losse")
