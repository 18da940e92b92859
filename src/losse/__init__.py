"""World models that learn online and never forget."""

from losse.encoders import FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder
from losse.ftl import FTLRegressor

__all__ = ["FTLRegressor", "FourierEncoder", "LosseEncoder", "ReLUEncoder", "TileEncoder"]
