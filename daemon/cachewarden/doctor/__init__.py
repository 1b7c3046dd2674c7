"""Trying out what can be guaranteed on this machine and in each location's filesystem."""

from cachewarden.doctor.examination import Examination, FilesystemFindings, examine
from cachewarden.doctor.finding import Finding, Grade
from cachewarden.doctor.memory import Own

__all__ = ["Examination", "FilesystemFindings", "Finding", "Grade", "Own", "examine"]
