"""Code that the command-line tools share; the package itself does not need it."""
