"""Serves reads of the log to workers whose logins may not read all of it."""

from deploy.processes.reading.read_service import serving_reads

__all__ = ["serving_reads"]
