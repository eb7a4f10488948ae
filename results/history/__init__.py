"""The verdicts of `fecbench compare` over the commits of a stack, and the commits at which it got slower or
faster."""
