"""A local page that follows runs: it reads their folders, and writes nothing."""

from losse.extras import import_on_use

__all__ = ["Watched", "make_app", "serve"]

__getattr__ = import_on_use(
    __name__, {"Watched": "watched", "make_app": "app", "serve": "server"}, extra="watch"
)
