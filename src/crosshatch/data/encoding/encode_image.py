"""A silo's part of every image as float32 (n, c, h, w): scale to [0, 1], standardise by channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import Array
from crosshatch.errors import DataError


@dataclass(frozen=True)
class ImageEncoder:
    """Fitted numbers (c,) for each channel, in units of the raw pixels."""

    low: Array
    high: Array
    centre: Array
    scale: Array

    def apply(self, x: Array, place: str) -> Array:
        """(n, h, w[, c]) raw pixels to (n, c, h, w) float32."""
        pixels = _with_channels(x)
        _require_finite(pixels, place)
        n, height, width, channels = pixels.shape
        out = np.empty((n, channels, height, width), dtype=np.float32)
        for k in range(channels):
            # One float32 pass each, in place: MNIST and CIFAR are too large for float64 copies.
            channel = out[:, k]
            channel[...] = pixels[..., k]
            if np.isfinite(self.low[k]):
                np.clip(channel, np.float32(self.low[k]), np.float32(self.high[k]), out=channel)
            channel -= np.float32(self.centre[k])
            channel /= np.float32(self.scale[k])
        return out


def fit_image(x: Array, preparation: Preparation, place: str) -> ImageEncoder:
    """Fit on training images. Bytes are divided by 255, other integers by the largest one, floats by nothing."""
    pixels = _with_channels(x)
    _require_finite(pixels, place)
    unit = 1.0
    if pixels.dtype == np.uint8:
        unit = 255.0
    elif pixels.dtype.kind in "iu":
        unit = max(1.0, float(pixels.max(initial=0)))
    mean, deviation = _moments(pixels)
    reach = np.inf if preparation.clip is None else preparation.clip * deviation
    # (x / unit - mean / unit) / (deviation / unit) = (x - mean) / deviation
    return ImageEncoder(
        low=mean - reach,
        high=mean + reach,
        centre=mean if preparation.standardise else np.zeros_like(mean),
        scale=deviation if preparation.standardise else np.full_like(mean, unit),
    )


def _moments(pixels: Array) -> tuple[Array, Array]:
    """Mean and deviation (c,) of all pixels of a channel, 1 for a constant one; in pieces, to spare memory."""
    pieces = np.array_split(pixels, max(1, len(pixels) // 1000))
    count = pixels[..., 0].size
    mean = sum(piece.sum(axis=(0, 1, 2), dtype=np.float64) for piece in pieces) / count
    variance = sum(np.square(piece - mean).sum(axis=(0, 1, 2)) for piece in pieces) / count
    deviation = np.sqrt(variance)
    constant = deviation <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(constant, 1.0, deviation)


def _with_channels(x: Array) -> Array:
    return x[..., None] if x.ndim == 3 else x


def _require_finite(pixels: Array, place: str) -> None:
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        image = int(np.argwhere(~np.isfinite(pixels))[0][0])
        raise DataError(f"{place}: image {image} has pixels that are NaN or infinite: correct or remove it")
