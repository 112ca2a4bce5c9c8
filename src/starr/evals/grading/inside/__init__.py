"""The child's side of the code sandbox: only the standard library, imported by ``python -I -S``."""
