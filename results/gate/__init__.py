"""Is a new build slower than an old one? Two arms of a campaign, and one verdict over all its networks."""
