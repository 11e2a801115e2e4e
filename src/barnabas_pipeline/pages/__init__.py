"""Serves a pipeline's tables as pages whose cards are filtered by clicks, without Spark."""
