"""One module per command, named after it, with ``add_arguments`` and ``run``."""
