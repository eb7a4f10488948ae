"""The results database, and the frames, figures and report that are read from it."""
