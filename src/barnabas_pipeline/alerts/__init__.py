"""Evaluates alert rules on a pipeline's tables and sends the resulting incidents."""
