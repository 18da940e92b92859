"""Shared test settings: hypothesis without deadlines, since a first call may compile.

The examples are the same in every run, so that a failure belongs to a change; new ones are tried
with HYPOTHESIS_PROFILE=explore.
"""

import os

from hypothesis import settings

settings.register_profile("losse", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=400, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "losse"))
