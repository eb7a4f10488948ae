package contract

// Sources is the hash of everything that endpoint and simulator are built from. The build sets it in both.
var Sources string

// TellSources is the only argument of a program that is asked for them.
const TellSources = "--sources"
