"""What a view is made of: sections, and the columns that they show."""

from inferometer.analyses.result import Field, Kind, Section, frame_of

__all__ = ["Field", "Kind", "Section", "frame_of"]
