"""Entry point of `python -m provision`."""

from provision.cli import main

if __name__ == "__main__":
    main()
