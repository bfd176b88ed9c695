"""Benchmarks: never part of a test's verdict."""
