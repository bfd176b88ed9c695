"""Code of the controller side, shared by the actions."""
