"""Encoders: x -> phi(x), the non-linear features on which the linear model rests (section 3.2)."""

from losse.encoders.adaptive import AdaptiveEncoder
from losse.encoders.base import Encoder
from losse.encoders.features import DenseFeatures, Features, SparseFeatures
from losse.encoders.fourier import FourierEncoder
from losse.encoders.losse import LosseEncoder
from losse.encoders.relu import ReLUEncoder
from losse.encoders.tile import TileEncoder

__all__ = [
    "AdaptiveEncoder",
    "DenseFeatures",
    "Encoder",
    "Features",
    "FourierEncoder",
    "LosseEncoder",
    "ReLUEncoder",
    "SparseFeatures",
    "TileEncoder",
]
