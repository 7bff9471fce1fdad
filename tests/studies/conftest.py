"""Data made to have a joint effect or none, and an executor that runs jobs where it is."""

from __future__ import annotations
