"""A silo's part of every image as float32 (n, c, h, w): scale to [0, 1], standardise by channel."""

import msgspec
import numpy as np

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import Array
from crosshatch.data.encoding.encode_table import clipping
from crosshatch.errors import DataError
from crosshatch.partition.windows import Window


class ImageEncoder(msgspec.Struct, frozen=True, tag_field="kind", tag="image"):
    """Fitted numbers (c,) for each channel, in units of the raw pixels; `limits` is None where nothing is clipped.

    The silo holds the `window` of an `image` (h, w[, c]). `whole`: its pixels were whole numbers.
    """

    image: tuple[int, ...]
    window: Window
    whole: bool
    limits: tuple[tuple[float, float], ...] | None
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def apply(self, x: Array, place: str) -> Array:
        """(n, h, w[, c]) raw pixels of the window to (n, c, h, w) float32."""
        pixels = _with_channels(x)
        _require_finite(pixels, place)
        if self.whole and pixels.dtype.kind == "f" and bool((pixels != np.rint(pixels)).any()):
            raise DataError(
                f"{place}: pixels have fractions, and those of the training images were whole numbers: give them in "
                "the same units"
            )
        n, height, width, channels = pixels.shape
        out = np.empty((n, channels, height, width), dtype=np.float32)
        for k in range(channels):
            # One float32 pass each, in place: MNIST and CIFAR are too large for float64 copies.
            channel = out[:, k]
            channel[...] = pixels[..., k]
            if self.limits is not None:
                low, high = self.limits[k]
                np.clip(channel, np.float32(low), np.float32(high), out=channel)
            channel -= np.float32(self.centre[k])
            channel /= np.float32(self.scale[k])
        return out


def fit_image(
    x: Array, preparation: Preparation, place: str, *, image: tuple[int, ...] = (), window: Window | None = None
) -> ImageEncoder:
    """Fit on training images. Bytes are divided by 255, other integers by the largest one, floats by nothing.

    They are the `window` of an `image`, or whole ones.
    """
    pixels = _with_channels(x)
    _require_finite(pixels, place)
    unit = 1.0
    if pixels.dtype == np.uint8:
        unit = 255.0
    elif pixels.dtype.kind in "iu":
        unit = max(1.0, float(pixels.max(initial=0)))
    mean, deviation = _moments(pixels)
    moments = list(zip(mean.tolist(), deviation.tolist(), strict=True))
    clip = preparation.clip
    # (x / unit - mean / unit) / (deviation / unit) = (x - mean) / deviation
    return ImageEncoder(
        image=image or x.shape[1:],
        window=window or Window(0, x.shape[1], 0, x.shape[2]),
        whole=pixels.dtype.kind in "iu",
        limits=None if clip is None else tuple(clipping(mean, deviation, clip) for mean, deviation in moments),
        centre=tuple(mean if preparation.standardise else 0.0 for mean, _ in moments),
        scale=tuple(deviation if preparation.standardise else unit for _, deviation in moments),
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
