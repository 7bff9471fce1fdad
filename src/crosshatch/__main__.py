"""`python -m crosshatch`, the same as `crosshatch`."""

from __future__ import annotations

from crosshatch.cli import main

if __name__ == "__main__":
    main()
