"""Entry point of `python -m provision`."""

import sys

try:
    from provision.cli import main
except ModuleNotFoundError as error:
    # Another Python than the environment's: say how to start, not where the import failed.
    if error.name and error.name.startswith("provision"):
        raise
    said = f"provision: {error.name} is not installed here; run `make setup`, then .venv/bin/python -m provision"
    print(said, file=sys.stderr)
    sys.exit(3)

if __name__ == "__main__":
    main()
