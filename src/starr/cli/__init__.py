"""The ``starr`` command: one file per verb, every flag defined once, one place where errors become one line."""
