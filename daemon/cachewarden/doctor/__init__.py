"""Trying out what can be guaranteed on this machine and in each location's filesystem."""

from cachewarden.doctor.examination import Examination, FilesystemFindings, Own, examine
from cachewarden.doctor.finding import Finding, Grade

__all__ = ["Examination", "FilesystemFindings", "Finding", "Grade", "Own", "examine"]
