"""Measures models or functions side by side; see ``--help``."""

from side_by_side.command import main

if __name__ == '__main__':
    main()
