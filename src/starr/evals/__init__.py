"""Tasks, grading and the evaluation runner."""
