"""A window that shows pictures, through Matplotlib, which our figures need anyway."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import logger
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from losse.extras import missing


class Window:
    """Opens with its first picture, and shows each for the time of one frame.

    Without a display, as on a server, it warns once and shows nothing.
    """

    def __init__(self, title: str, frames_per_second: int) -> None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            remedy = missing(
                "render_mode='human'", "matplotlib", otherwise="or use render_mode='rgb_array'"
            )
            raise DependencyNotInstalled(str(remedy)) from error
        self._plt = plt
        self._title = title
        self._seconds = 1.0 / frames_per_second
        self._image: Any = None

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture of shape (height, width, 3)."""
        if self._image is None:
            self._open(picture)
        self._image.set_data(picture)
        canvas = self._image.figure.canvas
        canvas.draw_idle()
        canvas.flush_events()
        if canvas.required_interactive_framework:
            canvas.start_event_loop(self._seconds)

    def close(self) -> None:
        """Close the window; a further picture opens another."""
        if self._image is not None:
            self._plt.close(self._image.figure)
            self._image = None

    def _open(self, picture: NDArray[np.uint8]) -> None:
        figure = self._plt.figure(self._title, figsize=(4, 4))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        self._image = axes.imshow(picture)
        if figure.canvas.required_interactive_framework:
            figure.show()
        else:
            logger.warn("render_mode='human' finds no display; use render_mode='rgb_array'")
