"""The timeline room: a finished run as spans of ranks and streams.

Import from here: `Timeline`, `Span`.
"""

from simcore.timeline.timeline import Span, Timeline

__all__ = ["Span", "Timeline"]
