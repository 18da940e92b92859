"""World models that learn online and never forget."""

from losse.encoders import FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder

__all__ = ["FourierEncoder", "LosseEncoder", "ReLUEncoder", "TileEncoder"]
