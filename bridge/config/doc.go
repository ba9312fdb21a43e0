// Package config is the configuration of a bridge: the tables of its file, their defaults, and all
// faults with their lines. Sets and destinations of the API stand beside the file, and the file wins.
// Nothing is opened here but the sinks of package destination/sink, by Store.OpenSink.
package config
