"""Effects on a command of being killed or stopped, a full disk, or a leap of its clock."""
