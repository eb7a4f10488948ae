"""Hunts: a search of a design's space for the network in which one variant does worse than another.

A hunt is a sequence of looks. Each look is a set of networks with a number of repetitions. Its trials are
those of campaigns of their own: with seeds that no look before it had, judged and kept as any others. So a
network is never judged by the trials that chose it, and a hunt goes on where it was interrupted.

`space` is where it looks, `lookout` counts and measures, and the parts of a hunt follow one another:
`search`, `finding`, `shrinking`, `region`. `laboratory` runs the campaigns; nothing else here knows them.
"""
