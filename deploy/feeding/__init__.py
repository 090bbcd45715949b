"""Feeding inputs from a file through the pipeline: lines, their exchanges, and counts of how these ended.

Only the lines whose exchanges are open are kept in memory: a file may be larger than memory.
"""

from deploy.feeding.feeder import Feeder
from deploy.feeding.line_reader import Line, lines_of
from deploy.feeding.lines import FIELDS, BadLine, LineFormat, LineInputs, Turn, format_of, parse
from deploy.feeding.tally import Failure, Outcome, Summary, Tally

__all__ = [
    "FIELDS",
    "BadLine",
    "Failure",
    "Feeder",
    "Line",
    "LineFormat",
    "LineInputs",
    "Outcome",
    "Summary",
    "Tally",
    "Turn",
    "format_of",
    "lines_of",
    "parse",
]
