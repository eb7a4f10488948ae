"""Design files, the space-filling planners and the criteria of their quality."""
