"""The command line where scripts are not on the path: ``python -m probox``."""

from probox.cli import main

if __name__ == "__main__":
    main()
