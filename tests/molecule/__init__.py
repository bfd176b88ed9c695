"""Molecule's scenarios, run as a person would."""
