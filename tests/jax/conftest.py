"""Double precision, and packed memories, on request."""

import jax
import pytest

import losse.ftl.memories.base
import losse.jax.model


@pytest.fixture
def doubles():
    """JAX with 64 bits, as long as a test lasts."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def small_squares(monkeypatch):
    """Models of more than 100 features are packed, in both forms."""
    monkeypatch.setattr(losse.ftl.memories.base, "SQUARE_LIMIT", 100)
    monkeypatch.setattr(losse.jax.model, "SQUARE_LIMIT", 100)
