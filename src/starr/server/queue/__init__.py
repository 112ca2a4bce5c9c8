"""Scheduling: requests wait, run together and leave."""
